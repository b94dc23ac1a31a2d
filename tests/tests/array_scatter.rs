//! Gather, scatter and scatter-accumulate against the same on a plain array, for every distribution.

use global_arrays::{Error, GlobalArray};
use ndarray::{Array1, Array2, ArrayD, Dimension, Ix2, IxDyn, s};
use tests::{for_each, matrix, spread};

/// So many indices of an array of this shape, a row each; duplicates among them.
fn indices(shape: &[usize], count: usize, random: &mut fastrand::Rng) -> Array2<usize> {
    Array2::from_shape_fn((count, shape.len()), |(_, axis)| random.usize(..shape[axis]))
}

#[test]
fn lists_of_elements_agree_with_a_plain_array() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(21);
        for round in 0..14 {
            let mut shape = spread::shape::<IxDyn>(1 + round % 7, 8, &mut random);
            shape.as_array_view_mut().map_inplace(|len| *len = (*len).max(1));
            let array = spread::array::<i64, IxDyn>(world, "a", shape.clone(), &mut random);
            let mut plain = ArrayD::<i64>::zeros(shape.clone());
            for turn in 0..4 {
                let list = indices(shape.slice(), random.usize(..300), &mut random);
                let values = Array1::from_shape_simple_fn(list.nrows(), || random.i64(-1000..1000));
                let acts = random.usize(..world.size()) == world.rank();
                for (index, value) in list.rows().into_iter().zip(&values) {
                    let place = &mut plain[index.as_slice().unwrap()];
                    // Of duplicates, the last value stays; but all are added.
                    *place = if turn == 0 { *value } else { *place - 3 * value };
                }
                if acts && turn == 0 {
                    array.scatter(&list, &values).unwrap();
                } else if acts {
                    array.scatter_accumulate(&list, -3, &values).unwrap();
                }
                array.sync().unwrap();
                assert_eq!(array.get(..).unwrap(), plain, "{:?}", array.distribution());
                let found = array.gather(&list).unwrap();
                let expected = list.rows().into_iter().map(|index| plain[index.as_slice().unwrap()]);
                assert_eq!(found, expected.collect::<Array1<_>>());
                array.sync().unwrap();
            }
            array.destroy().unwrap();
        }
    });
}

#[test]
fn everybody_may_add_to_the_same_elements() {
    matrix(|world| {
        let array = GlobalArray::<f64>::builder(world, "histogram", [9, 5]).block_cyclic(&[2, 2]).create().unwrap();
        let list: Vec<[usize; 2]> = (0..3000).map(|at| [at % 9, at * at % 5]).collect();
        let mut plain = Array2::zeros((9, 5));
        for index in &list {
            plain[*index] += 0.5 * world.size() as f64;
        }
        array.scatter_accumulate(&list, 0.5, &Array1::ones(list.len())).unwrap();
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap(), plain);
        array.sync().unwrap();
        array.destroy().unwrap();
    });
}

#[test]
fn lists_and_values_come_in_any_form() {
    for_each(1..=5, |world| {
        let array = GlobalArray::<f64>::create(world, "a", [30, 20]).unwrap();
        let line = GlobalArray::<i32, _>::create(world, "line", 100).unwrap();
        if world.rank() == 0 {
            let strided = Array1::from_iter((0..9).map(f64::from));
            array.scatter(&[[29, 19], [0, 0], [14, 10]], strided.slice(s![..;-4])).unwrap();
            line.scatter(&[7, 99][..], &[70, 990]).unwrap();
        }
        array.sync().unwrap();
        assert_eq!(array.gather(&vec![[14, 10], [29, 19], [0, 0], [14, 10]]).unwrap().to_vec(), [0.0, 8.0, 4.0, 0.0]);
        let kept = array.elements([[29usize, 19], [0, 0]].as_slice()).unwrap();
        let mut columns = Array2::zeros((2, 3));
        for column in 0..3 {
            kept.gather_into(columns.column_mut(column)).unwrap();
        }
        assert_eq!(columns, Array2::from_shape_fn((2, 3), |(row, _)| if row == 0 { 8.0 } else { 4.0 }));
        assert_eq!(line.gather(&vec![99usize, 7, 0]).unwrap().to_vec(), [990, 70, 0]);
        assert_eq!(line.gather(&[[7]]).unwrap().to_vec(), [70]);
        let none: [[usize; 2]; 0] = [];
        assert!(array.gather(&none).unwrap().is_empty());
        array.sync().unwrap();
        line.destroy().unwrap();
        array.destroy().unwrap();
    });
}

#[test]
fn a_list_that_leaves_the_array_moves_nothing() {
    matrix(|world| {
        let array = GlobalArray::<f64, Ix2>::create(world, "fock", [6, 6]).unwrap();
        let list = [[0, 0], [5, 5], [2, 6], [7, 7]];
        let refused = array.scatter(&list, &[1.0; 4]).unwrap_err();
        assert!(matches!(refused, Error::OutOfBounds { .. }));
        let said = refused.to_string();
        assert!(["'fock'", "[2, 6]", "number 2"].iter().all(|part| said.contains(part)), "{said}");
        assert!(array.scatter_accumulate(&list, 1.0, &[1.0; 4]).is_err());
        assert!(matches!(array.scatter(&list[..2], &[1.0; 3]), Err(Error::BufferShape { .. })));
        assert!(matches!(array.gather(&Array2::zeros((2, 3))), Err(Error::OutOfBounds { .. })));
        assert!(matches!(array.gather(&Array2::zeros((2, 9))), Err(Error::OutOfBounds { .. })));
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap().sum(), 0.0);
        array.sync().unwrap();
        array.destroy().unwrap();
    });
}
