//! Dot products, sums, norms and selections against plain arrays; the same on all ranks.

use armci_core::World;
use fastrand::Rng;
use global_arrays::{Error, GlobalArray};
use ndarray::{Array2, Axis, Dimension, Ix1, Ix2, Ix3, IxDyn, s};
use num_complex::Complex64;
use tests::numbers::{Sample, around, mirror, patch_of};
use tests::{each_type, for_each, matrix, spread};

fn agrees<T: Sample, D: Dimension>(world: &World, dims: usize, longest: usize, random: &mut Rng) {
    let shape = spread::shape::<D>(dims, longest, random);
    let ((outer_a, in_a), (outer_b, in_b)) = (around::<D>(shape.slice(), random), around::<D>(shape.slice(), random));
    let (a, plain_a) = mirror::<T, D>(world, outer_a, random, T::draw);
    let (b, plain_b) = mirror::<T, D>(world, outer_b, random, T::draw);
    let (x, y) = (a.slice(in_a).unwrap(), b.slice(in_b).unwrap());
    let (plain_x, plain_y) = (patch_of(&plain_a, &in_a), patch_of(&plain_b, &in_b));
    let zero = T::whole(0);
    let pairs = || plain_x.iter().copied().zip(plain_y.iter().copied());
    assert_eq!(x.dot(y).unwrap(), pairs().fold(zero, |sum, (x, y)| sum.and(x.by(y))));
    assert_eq!(x.dot(x).unwrap(), plain_x.iter().fold(zero, |sum, x| sum.and(x.by(*x))));
    assert_eq!(x.conjugate_dot(y).unwrap(), pairs().fold(zero, |sum, (x, y)| sum.and(x.mirrored().by(y))));
    assert_eq!(x.sum().unwrap(), plain_x.iter().fold(zero, |sum, x| sum.and(*x)));
    assert_eq!(a.sum().unwrap(), plain_a.iter().fold(zero, |sum, x| sum.and(*x)));
    let close = |found: f64, expected: f64| assert!((found - expected).abs() <= 1e-5 * expected, "{found} {expected}");
    let magnitude = |x: &T| x.square().sqrt();
    close(x.norm_frobenius().unwrap(), plain_x.iter().map(|x| x.square()).sum::<f64>().sqrt());
    close(x.norm_max().unwrap(), plain_x.iter().map(magnitude).fold(0.0, f64::max));
    let sums = |axis: usize| {
        let sums = plain_x.lanes(Axis(axis)).into_iter().map(|lane| lane.iter().map(magnitude).sum::<f64>());
        sums.fold(0.0, f64::max)
    };
    match dims {
        1 => {
            close(x.norm1().unwrap(), sums(0));
            close(x.norm_infinity().unwrap(), x.norm_max().unwrap());
        }
        2 => {
            close(x.norm1().unwrap(), sums(0));
            close(x.norm_infinity().unwrap(), sums(1));
        }
        _ => assert!(matches!(x.norm1(), Err(Error::Mismatch { .. }))),
    }
    // The first of equal ones, by its index in the array.
    for (found, sign) in [(x.select_min().unwrap(), -1.0), (x.select_max().unwrap(), 1.0)] {
        let mut best = None;
        for (index, value) in plain_x.indexed_iter() {
            if best.as_ref().is_none_or(|(_, best): &(_, T)| sign * value.key() > sign * best.key()) {
                best = Some((index, *value));
            }
        }
        let Some((index, value)) = best else {
            assert!(found.is_none());
            continue;
        };
        let (at, selected) = found.unwrap();
        assert_eq!(selected, value);
        let at: Vec<usize> = D::from_pattern(at).slice().to_vec();
        let expected: Vec<usize> =
            index.slice().iter().zip(in_a.start().iter()).map(|(at, start)| at + start).collect();
        assert_eq!(at, expected);
    }
    a.sync().unwrap();
    a.destroy().unwrap();
    b.destroy().unwrap();
}

/// Dimensions whose patterns can be read back.
trait FromPattern: Dimension {
    fn from_pattern(pattern: Self::Pattern) -> Self;
}
impl<D: Dimension> FromPattern for D
where
    D::Pattern: ndarray::IntoDimension<Dim = D>,
{
    fn from_pattern(pattern: Self::Pattern) -> Self {
        ndarray::IntoDimension::into_dimension(pattern)
    }
}

fn reductions<T: Sample>(world: &World, random: &mut Rng) {
    for _ in 0..2 {
        agrees::<T, Ix1>(world, 1, 60, random);
        agrees::<T, Ix2>(world, 2, 16, random);
        agrees::<T, Ix3>(world, 3, 6, random);
        agrees::<T, IxDyn>(world, random.usize(4..=6), 4, random);
    }
}

#[test]
fn reductions_agree_with_plain_arrays() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(61 + world.size() as u64);
        each_type!(reductions(world, &mut random));
    });
    matrix(|world| reductions::<f64>(world, &mut Rng::with_seed(62)));
}

#[test]
fn results_are_the_same_to_the_bit_on_all_ranks() {
    for_each(2..=5, |world| {
        let mut random = Rng::with_seed(71);
        let (a, _) = mirror::<f64, Ix2>(world, Ix2(37, 23), &mut random, |random| random.f64() - 0.5);
        let found = [
            a.dot(&a).unwrap(),
            a.sum().unwrap(),
            a.norm1().unwrap(),
            a.norm_infinity().unwrap(),
            a.norm_frobenius().unwrap(),
        ];
        let all = world.all_gather(&found.map(f64::to_bits)).unwrap();
        for rank in all.chunks_exact(found.len()) {
            assert_eq!(rank, found.map(f64::to_bits));
        }
        a.destroy().unwrap();
    });
}

#[test]
fn what_is_not_a_number_is_passed_over_by_selections_and_kept_by_norms() {
    for_each(1..=3, |world| {
        let a = GlobalArray::<f64>::builder(world, "a", [4, 6]).filled(f64::NAN).create().unwrap();
        assert_eq!(a.select_min().unwrap(), None);
        assert!(a.norm_max().unwrap().is_nan());
        assert!(a.norm1().unwrap().is_nan());
        assert!(a.norm_frobenius().unwrap().is_nan());
        a.slice(s![3, 2..4]).unwrap().fill(-1.0).unwrap();
        a.slice(s![1, 5]).unwrap().fill(-1.0).unwrap();
        assert_eq!(a.select_min().unwrap(), Some(((1, 5), -1.0)));
        assert_eq!(a.select_max().unwrap(), Some(((1, 5), -1.0)));
        assert_eq!(a.slice(s![2.., ..]).unwrap().select_max().unwrap(), Some(((3, 2), -1.0)));
        a.destroy().unwrap();
    });
}

#[test]
fn norms_of_very_large_and_very_small_numbers_are_found() {
    for_each(1..=3, |world| {
        for scale in [1e300, 1e-300, 0.0] {
            let a = GlobalArray::<f64>::builder(world, "a", [2, 2]).filled(scale).create().unwrap();
            let norm = a.norm_frobenius().unwrap();
            assert!((norm - 2.0 * scale).abs() <= 1e-12 * scale, "{norm}");
            a.destroy().unwrap();
        }
        // Below the normal numbers, of which the reciprocals are infinite.
        let a = GlobalArray::<f64>::builder(world, "a", [4, 4]).filled(1e-320).create().unwrap();
        assert_eq!(a.norm_frobenius().unwrap(), 4e-320);
        a.destroy().unwrap();
        let z =
            GlobalArray::<Complex64>::builder(world, "z", [2, 3]).filled(Complex64::new(3.0, -4.0)).create().unwrap();
        assert_eq!(z.dot(&z).unwrap(), Complex64::new(-42.0, -144.0));
        assert_eq!(z.conjugate_dot(&z).unwrap(), Complex64::new(150.0, 0.0));
        z.destroy().unwrap();
    });
}

#[test]
fn reductions_work_on_teams_and_blocks_larger_than_a_piece() {
    for_each(1..=4, |world| {
        let team = world.split(Some((world.rank() % 2) as i64), 0).unwrap().unwrap();
        let a = GlobalArray::<f64>::create(&team, "a", [500, 300]).unwrap();
        a.enumerate(0.0, 1.0).unwrap();
        let plain = Array2::from_shape_fn((500, 300), |(row, col)| (row * 300 + col) as f64);
        assert_eq!(a.sum().unwrap(), plain.sum());
        assert_eq!(a.norm1().unwrap(), plain.column(299).sum());
        assert_eq!(a.norm_infinity().unwrap(), plain.row(499).sum());
        assert_eq!(a.select_max().unwrap(), Some(((499, 299), 149_999.0)));
        a.destroy().unwrap();
        team.free().unwrap();
    });
}
