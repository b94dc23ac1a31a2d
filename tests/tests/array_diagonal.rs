//! Operations on diagonals, rows and columns against plain matrices of any shape and distribution.

use armci_core::World;
use fastrand::Rng;
use global_arrays::{Error, GlobalArray};
use ndarray::{Ix1, Ix2, Ix3};
use tests::numbers::{Sample, around, mirror, patch_of, set_patch};
use tests::{each_type, for_each, matrix, spread};

fn agrees<T: Sample>(world: &World, random: &mut Rng) {
    let shape = spread::shape::<Ix2>(2, 14, random);
    let (rows, cols) = (shape[0], shape[1]);
    let (outer, patch) = around::<Ix2>(&[rows, cols], random);
    let len = rows.min(cols);
    let mut vector = |len: usize| {
        let (outer, place) = around::<Ix1>(&[len], random);
        let (vector, plain) = mirror::<T, Ix1>(world, outer, random, T::draw);
        let values = patch_of(&plain, &place).into_raw_vec_and_offset().0;
        (vector, place, values)
    };
    let ((d, in_d, diagonal), (r, in_r, of_rows), (c, in_c, of_cols)) = (vector(len), vector(rows), vector(cols));
    let (d_slice, r_slice, c_slice) = (d.slice(in_d).unwrap(), r.slice(in_r).unwrap(), c.slice(in_c).unwrap());
    for operation in 0..7 {
        let (a, mut plain) = mirror::<T, Ix2>(world, outer, random, T::draw);
        let slice = a.slice(patch).unwrap();
        match operation {
            0 => slice.zero_diagonal(),
            1 => slice.set_diagonal(d_slice),
            2 => slice.add_diagonal(d_slice),
            3 => slice.shift_diagonal(T::whole(4)),
            4 => slice.scale_rows(r_slice),
            5 => slice.scale_cols(c_slice),
            _ => slice.get_diagonal(d_slice),
        }
        .unwrap();
        let before = patch_of(&plain, &patch);
        let mut expected = before.clone();
        for row in 0..rows {
            for col in 0..cols {
                let (x, on) = (before[[row, col]], row == col);
                expected[[row, col]] = match operation {
                    0 if on => T::whole(0),
                    1 if on => diagonal[row],
                    2 if on => x.and(diagonal[row]),
                    3 if on => x.and(T::whole(4)),
                    4 => x.by(of_rows[row]),
                    5 => x.by(of_cols[col]),
                    _ => x,
                };
            }
        }
        set_patch(&mut plain, &patch, &expected);
        let found = a.get(..).unwrap().into_dyn();
        assert_eq!(found, plain, "operation {operation} on {patch} of {:?}", a.distribution());
        a.sync().unwrap();
        if operation == 6 {
            d.sync().unwrap();
            let found = d.get(in_d).unwrap().to_vec();
            assert_eq!(found, (0..len).map(|at| before[[at, at]]).collect::<Vec<_>>());
            d.sync().unwrap();
        }
        a.destroy().unwrap();
    }
    for vector in [d, r, c] {
        vector.destroy().unwrap();
    }
}

#[test]
fn diagonals_rows_and_columns_agree_with_plain_matrices() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(81 + world.size() as u64);
        for _ in 0..4 {
            each_type!(agrees(world, &mut random));
        }
    });
    matrix(|world| {
        let mut random = Rng::with_seed(82);
        for _ in 0..4 {
            agrees::<f64>(world, &mut random);
        }
    });
}

#[test]
fn the_diagonal_alone_is_zeroed_whatever_the_blocks() {
    for_each(1..=5, |world| {
        for shape in [[6, 6], [9, 4], [4, 9], [1, 7], [7, 1], [2, 2], [10, 10]] {
            for blocks in [[1, 1], [10, 1], [1, 10]] {
                let a = GlobalArray::<f64>::builder(world, "a", shape).min_block(&blocks).filled(1.0).create().unwrap();
                a.zero_diagonal().unwrap();
                for ((row, col), x) in a.get(..).unwrap().indexed_iter() {
                    assert_eq!(*x, if row == col { 0.0 } else { 1.0 }, "({row}, {col}) of {shape:?}");
                }
                a.destroy().unwrap();
            }
        }
    });
}

#[test]
fn any_axis_is_scaled_by_a_vector() {
    for_each(1..=4, |world| {
        let mut random = Rng::with_seed(91);
        let (a, mut plain) = mirror::<i64, Ix3>(world, Ix3(4, 5, 6), &mut random, i64::draw);
        let (v, factors) = mirror::<i64, Ix1>(world, Ix1(5), &mut random, i64::draw);
        a.scale_along(1, &v).unwrap();
        for ((index, x), _) in plain.indexed_iter_mut().zip(0..) {
            *x *= factors[index[1]];
        }
        assert_eq!(a.get(..).unwrap().into_dyn(), plain);
        a.sync().unwrap();
        assert!(matches!(a.scale_along(2, &v), Err(Error::Mismatch { .. })));
        assert!(matches!(a.scale_along(3, &v), Err(Error::Mismatch { .. })));
        let m = GlobalArray::<i64>::create(world, "m", [5, 4]).unwrap();
        assert!(matches!(m.set_diagonal(&v), Err(Error::Mismatch { .. })));
        assert!(matches!(m.get_diagonal(&v), Err(Error::Mismatch { .. })));
        assert!(matches!(m.scale_cols(&v), Err(Error::Mismatch { .. })));
        m.scale_rows(&v).unwrap();
        m.destroy().unwrap();
        a.destroy().unwrap();
        v.destroy().unwrap();
    });
}
