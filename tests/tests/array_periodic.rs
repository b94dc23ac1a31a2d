//! Patches that wrap around the ends of an array, against the same elements of a plain one.

use std::ops::Range;

use armci_core::World;
use global_arrays::{Error, GlobalArray};
use ndarray::{Array, Array2, ArrayD, Dimension, Ix1, Ix2, Ix3, Ix4, IxDyn, s};
use tests::{for_each, matrix, spread};

/// Ranges around an array of this shape: of a length of up to `turns` times the axis', beginning anywhere near.
fn ranges(shape: &[usize], turns: usize, random: &mut fastrand::Rng) -> Vec<Range<isize>> {
    let around = |len: &usize| {
        let reach = 2 * *len as isize + 1;
        let start = random.isize(-reach..=reach);
        start..start + random.usize(..=turns * len) as isize
    };
    shape.iter().map(around).collect()
}

/// The element of the array that an index around it means.
fn wound(index: &[usize], ranges: &[Range<isize>], shape: &[usize]) -> Vec<usize> {
    let axes = index.iter().zip(ranges).zip(shape);
    axes.map(|((at, range), len)| (range.start + *at as isize).rem_euclid(*len as isize) as usize).collect()
}

/// Ranks take turns in putting to, and adding to, patches around an array; all compare it with a plain one.
fn agrees(world: &World, dims: usize, longest: usize, random: &mut fastrand::Rng) {
    let shape = spread::shape::<IxDyn>(dims, longest, random);
    let array = spread::array::<f64, IxDyn>(world, "a", shape.clone(), random);
    let shape = shape.slice();
    let mut plain = ArrayD::<f64>::zeros(shape);
    for turn in 0..6 {
        let acts = random.usize(..world.size()) == world.rank();
        let at = ranges(shape, 1 + turn % 2, random);
        let lengths: Vec<_> = at.iter().map(|range| range.len()).collect();
        let buffer = ArrayD::from_shape_fn(lengths, |_| f64::from(random.i32(-1000..1000)));
        for (index, value) in buffer.indexed_iter() {
            let place = &mut plain[&wound(index.slice(), &at, shape)[..]];
            *place = if turn % 2 == 0 { *value } else { *place + 0.5 * *value };
        }
        if acts && turn % 2 == 0 {
            array.periodic_put(&at[..], &buffer).unwrap();
        } else if acts {
            array.periodic_accumulate(&at[..], 0.5, &buffer).unwrap();
        }
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap(), plain, "{at:?} of {:?}", array.distribution());
        let at = ranges(shape, 3, random);
        let found = array.periodic_get(&at[..]).unwrap();
        for (index, value) in found.indexed_iter() {
            assert_eq!(*value, plain[&wound(index.slice(), &at, shape)[..]]);
        }
        array.sync().unwrap();
    }
    array.destroy().unwrap();
}

#[test]
fn patches_around_the_ends_agree_with_a_plain_array() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..8 {
            agrees(world, 1, 30, &mut random);
            agrees(world, 2, 12, &mut random);
            agrees(world, 3, 5, &mut random);
            agrees(world, 4, 3, &mut random);
        }
        agrees(world, 7, 2, &mut random);
    });
}

#[test]
fn ranges_are_literals_and_views_may_have_any_layout() {
    for_each(1..=5, |world| {
        let plain = Array2::from_shape_fn((7, 5), |(i, j)| (10 * i + j) as i64);
        let array = GlobalArray::<i64>::create(world, "torus", [7, 5]).unwrap();
        if world.rank() == 0 {
            // Columns backwards in memory, and rows that are columns.
            let turned = Array2::from_shape_fn((5, 7), |(j, i)| plain[[(i + 5) % 7, (4 - j + 3) % 5]]);
            array.periodic_put([-2..5, 3..8], turned.slice(s![..;-1, ..]).reversed_axes()).unwrap();
        }
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap(), plain);
        let mut big = Array2::zeros((20, 20));
        array.periodic_get_into([-1..8, 4..7], big.slice_mut(s![2..20;2, 2..8;-2])).unwrap();
        let found = big.slice(s![2..20;2, 2..8;-2]);
        for ((i, j), value) in found.indexed_iter() {
            assert_eq!(*value, plain[[(i + 6) % 7, (j + 4) % 5]]);
        }
        assert_eq!(big.sum(), found.sum(), "nothing beside the patch was written");
        array.sync().unwrap();
        array.destroy().unwrap();

        let line = GlobalArray::<f64, Ix1>::create(world, "ring", 6).unwrap();
        line.periodic_accumulate(4..10, 1.0, &Array::from_iter((0..6).map(f64::from))).unwrap();
        line.sync().unwrap();
        let all = line.periodic_get(-2..4).unwrap() / world.size() as f64;
        assert_eq!(all.to_vec(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        line.sync().unwrap();
        line.destroy().unwrap();
        // The same by arrays of fixed dimensions.
        let cube = GlobalArray::<f32, Ix3>::builder(world, "cube", [2, 3, 4]).filled(2.0).create().unwrap();
        assert_eq!(cube.periodic_get([-1..1, 2..4, 3..9]).unwrap(), Array::from_elem((2, 2, 6), 2.0));
        cube.destroy().unwrap();
        let four = GlobalArray::<f32, Ix4>::create(world, "four", [2, 1, 2, 1]).unwrap();
        assert_eq!(four.periodic_get([0..0, -9..9, 2..4, 0..1]).unwrap().shape(), [0, 18, 2, 1]);
        four.destroy().unwrap();
    });
}

#[test]
fn what_would_be_written_twice_or_runs_backwards_is_refused() {
    for_each(1..=3, |world| {
        let array = GlobalArray::<f64, Ix2>::builder(world, "torus", [4, 3]).filled(5.0).create().unwrap();
        let twice = array.periodic_put([0..5, 0..1], &Array2::zeros((5, 1)));
        assert!(matches!(twice, Err(Error::Mismatch { .. })), "{twice:?}");
        array.periodic_put([0..5, 1..1], &Array2::zeros((5, 0))).unwrap();
        let shape = array.periodic_put([-1..3, 0..1], &Array2::zeros((1, 4)));
        assert!(matches!(shape, Err(Error::BufferShape { .. })), "{shape:?}");
        let shape = array.periodic_accumulate([-1..3, 0..1], 1.0, &Array2::zeros((1, 4)));
        assert!(matches!(shape, Err(Error::BufferShape { .. })), "{shape:?}");
        let shape = array.periodic_get_into([-1..3, 0..1], &mut Array2::zeros((1, 4)));
        assert!(matches!(shape, Err(Error::BufferShape { .. })), "{shape:?}");
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = array.periodic_get([3..2, 0..1]);
        assert!(matches!(&backwards, Err(Error::OutOfBounds { .. })), "{backwards:?}");
        let huge = array.periodic_get([0..isize::MAX, 0..isize::MAX]);
        assert!(matches!(&huge, Err(Error::OutOfBounds { .. })), "{huge:?}");
        assert_eq!(array.get(..).unwrap(), Array2::from_elem((4, 3), 5.0));
        array.destroy().unwrap();
        let nothing = GlobalArray::<f64, Ix2>::create(world, "nothing", [0, 3]).unwrap();
        assert!(matches!(nothing.periodic_get([0..1, 0..1]), Err(Error::OutOfBounds { .. })));
        assert_eq!(nothing.periodic_get([4..4, 0..1]).unwrap().len(), 0);
        nothing.destroy().unwrap();
    });
}
