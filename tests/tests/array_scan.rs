//! Running sums, copies along segments, packing and unpacking against the same on plain vectors.

use armci_core::World;
use fastrand::Rng;
use global_arrays::{Error, GlobalArray, Scan};
use ndarray::Ix1;
use tests::numbers::{Sample, around, mirror, patch_of, set_patch};
use tests::{each_type, for_each, matrix};

fn agrees<T: Sample>(world: &World, random: &mut Rng) {
    let len = [0, 1, 3, 40, 77][random.usize(..5)];
    let often = random.i32(1..12);
    let ((outer_s, in_s), (outer_m, in_m), (outer_d, in_d)) =
        (around::<Ix1>(&[len], random), around::<Ix1>(&[len], random), around::<Ix1>(&[len], random));
    let (s, source) = mirror::<T, Ix1>(world, outer_s, random, T::draw);
    let (m, mask) = mirror::<i32, Ix1>(world, outer_m, random, |random| if random.i32(0..often) == 0 { -1 } else { 0 });
    let (xs, begins) = (patch_of(&source, &in_s), patch_of(&mask, &in_m));
    let (from, at) = (s.slice(in_s).unwrap(), m.slice(in_m).unwrap());
    let chosen = begins.iter().filter(|begins| **begins != 0).count();
    for operation in 0..5 {
        let (d, mut plain) = mirror::<T, Ix1>(world, outer_d, random, T::draw);
        let to = d.slice(in_d).unwrap();
        let mut expected = patch_of(&plain, &in_d);
        match operation {
            0 | 1 => {
                let scan = [Scan::Inclusive, Scan::Exclusive][operation];
                to.scan_add(from, at, scan).unwrap();
                let mut sum = None;
                for place in 0..len {
                    if begins[place] != 0 {
                        sum = Some(T::whole(0));
                    }
                    if let Some(before) = sum {
                        let after = before.and(xs[place]);
                        expected[place] = if scan == Scan::Inclusive { after } else { before };
                        sum = Some(after);
                    }
                }
            }
            2 => {
                to.scan_copy(from, at).unwrap();
                let mut value = T::whole(0);
                for place in 0..len {
                    if begins[place] != 0 {
                        value = xs[place];
                    }
                    expected[place] = value;
                }
            }
            3 => {
                assert_eq!(to.pack(from, at).unwrap(), chosen);
                let packed = (0..len).filter(|place| begins[*place] != 0);
                for (number, place) in packed.enumerate() {
                    expected[number] = xs[place];
                }
            }
            _ => {
                assert_eq!(to.unpack(from, at).unwrap(), chosen);
                let places = (0..len).filter(|place| begins[*place] != 0);
                for (number, place) in places.enumerate() {
                    expected[place] = xs[number];
                }
            }
        }
        set_patch(&mut plain, &in_d, &expected);
        let found = d.get(..).unwrap().into_dyn();
        assert_eq!(found, plain, "operation {operation}, {len} elements, mask {begins}");
        d.sync().unwrap();
        d.destroy().unwrap();
    }
    // In place.
    s.slice(in_s).unwrap().scan_add(from, at, Scan::Inclusive).unwrap();
    s.sync().unwrap();
    s.destroy().unwrap();
    m.destroy().unwrap();
}

#[test]
fn scans_and_packing_agree_with_plain_vectors() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(101 + world.size() as u64);
        for _ in 0..10 {
            each_type!(agrees(world, &mut random));
        }
    });
    matrix(|world| {
        let mut random = Rng::with_seed(102);
        for _ in 0..5 {
            agrees::<f64>(world, &mut random);
        }
    });
}

#[test]
fn long_vectors_are_scanned_in_pieces_and_in_place() {
    for_each(1..=3, |world| {
        let a = GlobalArray::<i64, Ix1>::builder(world, "a", [200_000]).filled(1).create().unwrap();
        let mask = GlobalArray::<i32, Ix1>::create(world, "mask", [200_000]).unwrap();
        for start in [0, 90_000] {
            mask.slice(start..start + 1).unwrap().fill(1).unwrap();
        }
        a.scan_add(&a, &mask, Scan::Inclusive).unwrap();
        let sums = a.get(..).unwrap();
        assert!(sums.iter().enumerate().all(|(at, sum)| *sum as usize == at % 90_000 + 1 || at >= 180_000));
        assert_eq!(sums[199_999], 110_000);
        a.sync().unwrap();
        a.destroy().unwrap();
        mask.destroy().unwrap();
    });
}

#[test]
fn what_does_not_fit_is_an_error_on_all_ranks_alike() {
    for_each(1..=3, |world| {
        let a = GlobalArray::<f64, Ix1>::builder(world, "a", [10]).filled(1.0).create().unwrap();
        let b = a.duplicate("b").unwrap();
        let refused = [
            b.slice(0..4).unwrap().pack(&a, &a).map(drop),
            b.unpack(a.slice(0..9).unwrap(), &a).map(drop),
            b.pack(&b, &a).map(drop),
            b.scan_copy(a.slice(0..9).unwrap(), &a),
            b.slice(0..9).unwrap().scan_add(b.slice(1..10).unwrap(), a.slice(0..9).unwrap(), Scan::Inclusive),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
        }
        assert_eq!(b.get(..).unwrap().sum(), 0.0);
        a.sync().unwrap();
        a.destroy().unwrap();
        b.destroy().unwrap();
    });
}
