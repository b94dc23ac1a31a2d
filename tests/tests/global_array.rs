//! Patches of distributed arrays against the same operations on a plain matrix.

use global_arrays::{Error, GlobalArray};
use ndarray::{Array2, ArrayView2, s};
use tests::matrix;

#[test]
fn patches_across_owners_agree_with_a_plain_matrix() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(5);
        for shape in [[1, 1], [7, 5], [30, 41], [3, 200], [64, 64]] {
            let array = GlobalArray::<f64>::create(world, "a", shape).unwrap();
            let mut plain = Array2::<f64>::zeros(shape);
            // All ranks draw the same numbers; rank `turn` acts.
            for turn in 0..20 {
                let mut range = |len: usize| {
                    let (a, b) = (random.usize(..=len), random.usize(..=len));
                    a.min(b)..a.max(b)
                };
                let (rows, cols) = (range(shape[0]), range(shape[1]));
                let buffer = Array2::from_shape_fn((rows.len(), cols.len()), |(row, col)| {
                    (turn * 10_000 + row * 100 + col) as f64
                });
                let patch = [rows.clone(), cols.clone()];
                let mut place = plain.slice_mut(s![rows, cols]);
                let acts = turn % world.size() == world.rank();
                if turn % 2 == 0 {
                    place.assign(&buffer);
                    if acts {
                        array.put(patch, buffer.view()).unwrap();
                    }
                } else {
                    place.scaled_add(-0.5, &buffer);
                    if acts {
                        array.accumulate(patch, -0.5, buffer.view()).unwrap();
                    }
                }
                array.sync().unwrap();
                assert_eq!(array.get([0..shape[0], 0..shape[1]]).unwrap(), plain);
                array.sync().unwrap();
            }
            array.zero().unwrap();
            assert_eq!(array.get([0..shape[0], 0..shape[1]]).unwrap(), Array2::<f64>::zeros(shape));
            array.destroy().unwrap();
        }
    });
}

#[test]
fn any_layout_of_view_is_taken() {
    matrix(|world| {
        let array = GlobalArray::<i64>::create(world, "views", [12, 10]).unwrap();
        let big = Array2::from_shape_fn((40, 40), |(row, col)| (row * 100 + col) as i64);
        let first_row = big.slice(s![0..1, 4..14]);
        let views: [ArrayView2<'_, i64>; 5] = [
            big.slice(s![3..15, 4..14]),
            big.slice(s![3..27;2, 4..34;3]),
            big.slice(s![3..15;-1, 4..14]),
            big.t().slice_move(s![3..15, 4..14]),
            first_row.broadcast((12, 10)).unwrap(),
        ];
        for view in views {
            if world.rank() == 0 {
                array.put([0..12, 0..10], view).unwrap();
            }
            array.sync().unwrap();
            let mut target = Array2::<i64>::zeros((50, 50));
            array.get_into([0..12, 0..10], target.slice_mut(s![2..14, 5..15])).unwrap();
            assert_eq!(target.slice(s![2..14, 5..15]), view);
            assert_eq!(target.sum(), view.sum(), "nothing beside the patch was written");
            let mut columns = Array2::<i64>::zeros((50, 50));
            let rows_that_are_columns = columns.view_mut().reversed_axes().slice_move(s![2..14, 5..15]);
            array.get_into([0..12, 0..10], rows_that_are_columns).unwrap();
            assert_eq!(columns.t().slice(s![2..14, 5..15]), view);
            array.sync().unwrap();
        }
        array.destroy().unwrap();
    });
}

#[test]
fn every_element_has_one_owner_and_lies_in_its_block() {
    matrix(|world| {
        for shape in [[5, 3], [2, 1], [100, 1], [0, 4]] {
            let array = GlobalArray::<f64>::create_with_blocks(world, "blocks", shape, [2, 1]).unwrap();
            let [rows, cols] = array.distribution(world.rank());
            let value = world.rank() as f64 + 1.0;
            if !rows.is_empty() && !cols.is_empty() {
                // SAFETY: OWN-BLOCK: nobody touches the array between the two syncs but its owners.
                #[allow(unsafe_code)]
                let mut block = unsafe { array.local_view_mut() }.unwrap();
                assert_eq!(block.shape(), [rows.len(), cols.len()]);
                block.fill(value);
            }
            array.sync().unwrap();
            for ((row, col), found) in array.get([0..shape[0], 0..shape[1]]).unwrap().indexed_iter() {
                assert_eq!(*found, array.owner([row, col]).unwrap() as f64 + 1.0);
            }
            assert_eq!(array.owner([shape[0], 0]), None);
            array.destroy().unwrap();
        }
    });
}

#[test]
fn bad_patches_are_errors_that_name_the_array() {
    matrix(|world| {
        let array = GlobalArray::<f64>::create(world, "fock", [4, 4]).unwrap();
        let outside = array.get([2..5, 0..1]).unwrap_err().to_string();
        assert!(outside.contains("'fock'") && outside.contains("2..5") && outside.contains("[4, 4]"), "{outside}");
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = array.get([3..2, 0..1]);
        assert!(matches!(backwards, Err(Error::OutOfBounds { .. })));
        let wrong = array.put([0..2, 0..2], Array2::zeros((2, 3)).view());
        assert!(matches!(wrong, Err(Error::BufferShape { .. })));
        assert!(matches!(GlobalArray::<f64>::create(world, "huge", [usize::MAX, 2]), Err(Error::TooLarge { .. })));
        assert_eq!(array.get([0..4, 0..4]).unwrap().sum(), 0.0);
        array.destroy().unwrap();
    });
}
