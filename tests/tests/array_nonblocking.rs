//! Transfers of patches under way: many at once, waited for in any order, dropped, forgotten, in scopes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use global_arrays::{Error, GlobalArray, nonblocking};
use ndarray::{Array, Array2, ArrayD, Axis, Dimension, Ix2, Ix3, IxDyn, SliceInfo, SliceInfoElem, s};
use tests::{for_each, matrix, spread};

/// A section of an array of this shape: ranges, some with steps, some backwards.
fn section(shape: &[usize], random: &mut fastrand::Rng) -> Vec<SliceInfoElem> {
    let elements = shape.iter().map(|len| {
        let (a, b) = (random.usize(..=*len) as isize, random.usize(..=*len) as isize);
        let step = [1, 1, 1, 2, -1, -3][random.usize(..6)];
        SliceInfoElem::Slice { start: a.min(b), end: Some(a.max(b)), step }
    });
    elements.collect()
}

fn as_slice(section: &[SliceInfoElem]) -> SliceInfo<&[SliceInfoElem], IxDyn, IxDyn> {
    SliceInfo::try_from(section).unwrap()
}

/// A buffer of this shape in some layout, of values that are drawn.
fn buffer(shape: &[usize], random: &mut fastrand::Rng) -> ArrayD<f64> {
    let mut buffer = ArrayD::from_shape_simple_fn(shape, || f64::from(random.i32(-1000..1000)));
    match random.usize(..4) {
        0 => buffer.invert_axis(Axis(random.usize(..shape.len()))),
        1 => {
            let reversed: Vec<_> = shape.iter().rev().copied().collect();
            buffer = ArrayD::from_shape_simple_fn(reversed, || f64::from(random.i32(-1000..1000))).reversed_axes();
        }
        _ => {}
    }
    buffer
}

#[test]
fn transfers_under_way_agree_with_a_plain_array() {
    matrix(|world| {
        // What all ranks draw alike, and what only the rank draws that acts.
        let (mut random, mut order) = (fastrand::Rng::with_seed(11), fastrand::Rng::with_seed(12));
        for round in 0..12 {
            let shape = spread::shape::<IxDyn>(1 + round % 4, 14, &mut random);
            let array = spread::array::<f64, IxDyn>(world, "a", shape.clone(), &mut random);
            let mut plain = ArrayD::<f64>::zeros(shape.clone());
            let acts = round % world.size() == world.rank();
            // Operations of one rank keep their order, whether they were waited for or not.
            let (mut changes, mut gets) = (Vec::new(), Vec::new());
            for turn in 0..30 {
                let at = section(shape.slice(), &mut random);
                let mut place = plain.slice_mut(&at[..]);
                let source = buffer(place.shape(), &mut random);
                let target = buffer(place.shape(), &mut random);
                match turn % 5 {
                    0 => place.assign(&source),
                    1 => place.scaled_add(-0.5, &source),
                    _ => {}
                }
                if !acts {
                    continue;
                }
                let expected = place.to_owned();
                match turn % 5 {
                    0 => changes.push((array.put_nb(as_slice(&at), source.clone()).unwrap(), source)),
                    1 => changes.push((array.accumulate_nb(as_slice(&at), -0.5, source.clone()).unwrap(), source)),
                    2 => gets.push((array.get_nb(as_slice(&at)).unwrap(), expected)),
                    3 => gets.push((array.get_into_nb(as_slice(&at), target).unwrap(), expected)),
                    _ if gets.is_empty() => {}
                    _ => drop(gets.swap_remove(order.usize(..gets.len()))),
                }
            }
            order.shuffle(&mut gets);
            for (get, expected) in gets {
                while order.bool() && !get.test() {}
                assert_eq!(get.wait().unwrap(), expected, "{:?}", array.distribution());
            }
            for (change, source) in changes {
                assert_eq!(change.wait().unwrap(), source, "a source comes back as it was");
            }
            array.sync().unwrap();
            assert_eq!(array.get(..).unwrap(), plain);
            array.sync().unwrap();
            array.destroy().unwrap();
        }
    });
}

#[test]
fn what_a_scope_was_lent_is_filled_when_it_ends() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(3 + world.size() as u64);
        for _ in 0..6 {
            let (rows, cols) = (random.usize(1..30), random.usize(1..30));
            let array = spread::array::<f64, Ix2>(world, "a", Ix2(rows, cols), &mut random);
            let other = spread::array::<f64, Ix2>(world, "b", Ix2(rows, cols), &mut random);
            let plain = Array2::from_shape_simple_fn((rows, cols), || f64::from(random.i32(-100..100)));
            if world.rank() == 0 {
                let (upper, lower) = plain.view().split_at(Axis(0), rows / 2);
                nonblocking(world, |scope| {
                    scope.put(&array, [0..rows / 2, 0..cols], upper)?;
                    let put = scope.put(&array, s![rows / 2.., ..;-1], lower.slice_move(s![.., ..;-1]))?;
                    assert_eq!(put.wait()?, plain.slice(s![rows / 2.., ..;-1]));
                    scope.accumulate(&other, .., 3.0, &plain)?;
                    // A layout that no strided transfer has.
                    scope.accumulate(&other, .., -1.0, plain.slice(s![..;-1, ..]))?;
                    Ok(())
                })
                .unwrap();
            }
            array.sync().unwrap();
            let mut sum = &plain * 3.0;
            sum.scaled_add(-1.0, &plain.slice(s![..;-1, ..]));
            // Both, interleaved in one buffer, one of them backwards, and a column by itself.
            let (mut both, mut column) = (Array2::<f64>::zeros((2 * rows, cols)), Array::zeros(rows));
            let col = random.usize(..cols);
            nonblocking(world, |scope| {
                let mut parts = both.exact_chunks_mut((rows, cols)).into_iter();
                let (first, mut second) = (parts.next().unwrap(), parts.next().unwrap());
                second.invert_axis(Axis(0));
                scope.get(&array, .., first)?;
                let second = scope.get(&other, .., second)?;
                let column = scope.get(&array, s![.., col], &mut column)?;
                assert_eq!(column.wait()?, plain.column(col));
                second.test();
                Ok(())
            })
            .unwrap();
            assert_eq!(both.slice(s![..rows, ..]), plain);
            assert_eq!(both.slice(s![rows..;-1, ..]), sum);
            assert_eq!(column, plain.column(col));
            array.sync().unwrap();
            other.destroy().unwrap();
            array.destroy().unwrap();
        }
    });
}

#[test]
fn a_scope_that_fails_or_panics_has_waited() {
    matrix(|world| {
        let array = GlobalArray::<f64, Ix3>::builder(world, "cube", [20, 20, 20]).filled(4.0).create().unwrap();
        let mut first = Array::zeros((20, 20, 20));
        let failed = nonblocking(world, |scope| {
            scope.get(&array, .., &mut first)?;
            let mut outside = Array::zeros((1, 1, 1));
            array.get_into([20..21, 0..1, 0..1], &mut outside)
        });
        assert!(matches!(failed, Err(Error::OutOfBounds { .. })));
        assert_eq!(first.sum(), 4.0 * 8000.0);
        let mut second = Array::zeros((20, 20, 20));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            nonblocking(world, |scope| -> global_arrays::Result<()> {
                scope.get(&array, .., &mut second)?;
                // As a panic, but without a word of it.
                std::panic::resume_unwind(Box::new("on purpose"));
            })
        }));
        assert!(caught.is_err());
        assert_eq!(second.sum(), 4.0 * 8000.0);
        array.sync().unwrap();
        array.destroy().unwrap();
    });
}

#[test]
fn forgotten_handles_harm_nobody() {
    matrix(|world| {
        let array = GlobalArray::<f64>::builder(world, "a", [60, 60]).filled(1.0).create().unwrap();
        for _ in 0..50 {
            std::mem::forget(array.get_nb(..).unwrap());
            drop(array.get_nb(..).unwrap());
        }
        assert_eq!(array.get_nb(..).unwrap().wait().unwrap(), Array2::ones((60, 60)));
        array.sync().unwrap();
        array.destroy().unwrap();
    });
}

#[test]
fn what_cannot_be_started_is_an_error_and_moves_nothing() {
    for_each(1..=3, |world| {
        let array = GlobalArray::<f64>::create(world, "fock", [4, 4]).unwrap();
        assert!(matches!(array.get_nb([2..5, 0..1]), Err(Error::OutOfBounds { .. })));
        assert!(matches!(array.put_nb([0..2, 0..2], Array2::ones((2, 3))), Err(Error::BufferShape { .. })));
        assert!(matches!(array.get_into_nb([0..2, 0..2], Array2::ones((3, 2))), Err(Error::BufferShape { .. })));
        assert!(matches!(array.accumulate_nb(s![5, ..], 1.0, Array::ones(4)), Err(Error::OutOfBounds { .. })));
        let mut target = Array2::ones((2, 2));
        let refused = nonblocking(world, |scope| scope.get(&array, [0..3, 0..2], &mut target).map(drop));
        assert!(matches!(refused, Err(Error::BufferShape { .. })));
        assert_eq!(target, Array2::<f64>::ones((2, 2)));
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap().sum(), 0.0);
        array.destroy().unwrap();
    });
}
