//! Linear algebra of distributed arrays against the same operations on plain ones.

use armci_core::World;
use fastrand::Rng;
use global_arrays::{Error, GlobalArray, MatrixOperand, Patch, Scalar};
use ndarray::{Array1, Array2, ArrayView2, Axis, Ix1, Ix2, s};
use num_complex::{Complex32, Complex64};
use tests::{for_each, matrix, spread};

/// A number whose sums of products are exact in every type: a small integer, complex if there are such.
fn draw<T: Scalar>(random: &mut Rng) -> T {
    let (re, im) = (random.i32(-4..=4), random.i32(-4..=4));
    number(f64::from(re), f64::from(im))
}

fn number<T: Scalar>(re: f64, im: f64) -> T {
    let mut value = T::of_real(re);
    if T::IS_COMPLEX {
        // The imaginary part lies behind the real one.
        let half = size_of::<T>() / 2;
        let imaginary = T::of_real(im);
        bytemuck::bytes_of_mut(&mut value)[half..].copy_from_slice(&bytemuck::bytes_of(&imaginary)[..half]);
    }
    value
}

fn plain<T: Scalar>(rows: usize, cols: usize, random: &mut Rng) -> Array2<T> {
    Array2::from_shape_fn((rows, cols), |_| draw(random))
}

/// An array of a drawn distribution with these elements, put by rank 0.
fn spread_out<T: Scalar>(world: &World, name: &str, elements: &Array2<T>, random: &mut Rng) -> GlobalArray<T> {
    let array = spread::array::<T, Ix2>(world, name, elements.raw_dim(), random);
    if world.rank() == 0 {
        array.put(.., elements).unwrap();
    }
    array.sync().unwrap();
    array
}

/// An array and a patch of it of this shape.
fn with_patch<T: Scalar>(
    world: &World,
    name: &str,
    shape: [usize; 2],
    random: &mut Rng,
) -> (GlobalArray<T>, Array2<T>, Patch) {
    let margins: [usize; 4] = std::array::from_fn(|_| if random.bool() { 0 } else { random.usize(..6) });
    let all = plain(shape[0] + margins[0] + margins[1], shape[1] + margins[2] + margins[3], random);
    let array = spread_out(world, name, &all, random);
    (array, all, Patch::from([margins[0]..margins[0] + shape[0], margins[2]..margins[2] + shape[1]]))
}

fn view<'a, T>(all: &'a Array2<T>, patch: &Patch) -> ArrayView2<'a, T> {
    all.slice(s![patch.range(0), patch.range(1)])
}

fn conjugated<T: Scalar>(matrix: ArrayView2<'_, T>) -> Array2<T> {
    matrix.mapv(T::conjugate)
}

/// One of the ways that an operand is turned, and what it turns a plain matrix into.
fn turned<'a, T: Scalar>(
    way: usize,
    operand: MatrixOperand<'a, T>,
    plain: ArrayView2<'_, T>,
) -> (MatrixOperand<'a, T>, Array2<T>) {
    match way {
        0 => (operand, plain.to_owned()),
        1 => (operand.t(), plain.t().to_owned()),
        2 => (operand.h(), conjugated(plain.t())),
        _ => (operand.h().t(), conjugated(plain)),
    }
}

fn product_agrees<T: Scalar>(world: &World, longest: usize, random: &mut Rng) {
    let mut length = || if random.usize(..12) == 0 { random.usize(..2) } else { random.usize(1..=longest) };
    let (m, n, k) = (length(), length(), length());
    let (way_a, way_b) = (random.usize(..4), random.usize(..4));
    let shape = |way, rows, cols| if way == 1 || way == 2 { [cols, rows] } else { [rows, cols] };
    let (a, all_a, patch_a) = with_patch::<T>(world, "a", shape(way_a, m, k), random);
    let (b, all_b, patch_b) = with_patch::<T>(world, "b", shape(way_b, k, n), random);
    let (c, mut all_c, patch_c) = with_patch::<T>(world, "c", [m, n], random);
    let scalar = |random: &mut Rng| if random.usize(..3) == 0 { T::zeroed() } else { draw::<T>(random) };
    let (alpha, beta) = (scalar(random), scalar(random));
    let (left, plain_a) = turned(way_a, a.slice(patch_a).unwrap().into(), view(&all_a, &patch_a));
    let (right, plain_b) = turned(way_b, b.slice(patch_b).unwrap().into(), view(&all_b, &patch_b));
    c.slice(patch_c).unwrap().assign_product(alpha, left, right, beta).unwrap();
    let mut place = all_c.slice_mut(s![patch_c.range(0), patch_c.range(1)]);
    let expected = plain_a.dot(&plain_b).mapv(|value| alpha * value) + place.mapv(|value| beta * value);
    place.assign(&expected);
    assert_eq!(c.get(..).unwrap(), all_c, "{m} {n} {k} {:?}", [a.distribution(), b.distribution(), c.distribution()]);
    c.sync().unwrap();
    [a, b, c].into_iter().for_each(|array| array.destroy().unwrap());
}

#[test]
fn products_of_patches_agree_with_plain_ones() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(world.size() as u64);
        for _ in 0..25 {
            product_agrees::<f64>(world, 24, &mut random);
            product_agrees::<f32>(world, 24, &mut random);
            product_agrees::<Complex32>(world, 24, &mut random);
            product_agrees::<Complex64>(world, 24, &mut random);
        }
    });
}

#[test]
fn products_agree_over_every_protocol() {
    matrix(|world| {
        let mut random = Rng::with_seed(3);
        for _ in 0..10 {
            product_agrees::<f64>(world, 20, &mut random);
            product_agrees::<Complex64>(world, 20, &mut random);
        }
    });
}

#[test]
fn large_products_agree_with_plain_ones() {
    for_each([2, 3], |world| {
        let mut random = Rng::with_seed(9);
        for _ in 0..6 {
            product_agrees::<f64>(world, 1200, &mut random);
        }
    });
}

#[test]
fn what_was_there_is_not_looked_at_if_beta_is_zero_nor_the_operands_if_alpha_is() {
    for_each(1..=4, |world| {
        let mut random = Rng::with_seed(2);
        for _ in 0..10 {
            let make = |name, value, random: &mut Rng| {
                let array = spread::array::<f64, Ix2>(world, name, ndarray::Dim([30, 30]), random);
                array.fill(value).unwrap();
                array
            };
            let (ones, nothing) = (make("ones", 1.0, &mut random), make("nothing", f64::NAN, &mut random));
            let target = make("target", f64::NAN, &mut random);
            target.assign_product(1.0, &ones, &ones, 0.0).unwrap();
            assert_eq!(target.get(..).unwrap(), Array2::from_elem((30, 30), 30.0));
            target.assign_product(0.0, &nothing, &ones, 2.0).unwrap();
            assert_eq!(target.get(..).unwrap(), Array2::from_elem((30, 30), 60.0));
            let none = s![.., 3..3];
            let (a, b) = (nothing.slice(none).unwrap(), ones.slice(none).unwrap());
            target.assign_product(1.0, a, b.t(), 0.0).unwrap();
            assert_eq!(target.get(..).unwrap(), Array2::zeros((30, 30)));
            target.sync().unwrap();
            [ones, nothing, target].into_iter().for_each(|array| array.destroy().unwrap());
        }
    });
}

#[test]
fn patches_of_one_array_multiply_unless_they_overlap() {
    for_each(1..=3, |world| {
        let mut random = Rng::with_seed(7);
        let mut all = plain::<f64>(20, 30, &mut random);
        let array = spread_out(world, "all", &all, &mut random);
        let [a, b, c] = [s![..10, ..10], s![..10, 10..20], s![10.., 20..]].map(|at| array.slice(at).unwrap());
        c.assign_product(1.0, a.t(), b, 1.0).unwrap();
        let expected = all.slice(s![..10, ..10]).t().dot(&all.slice(s![..10, 10..20])) + all.slice(s![10.., 20..]);
        all.slice_mut(s![10.., 20..]).assign(&expected);
        assert_eq!(array.get(..).unwrap(), all);
        let refused = a.assign_product(1.0, b, a, 0.0).unwrap_err().to_string();
        assert!(refused.contains("overlap") && refused.contains("'all'"), "{refused}");
        let refused = c.assign_product(1.0, a, array.slice(s![..9, ..10]).unwrap(), 0.0).unwrap_err().to_string();
        assert!(refused.contains("shapes"), "{refused}");
        assert_eq!(array.get(..).unwrap(), all, "a refused product changes nothing");
        array.sync().unwrap();
        array.destroy().unwrap();
    });
}

fn vector_agrees<T: Scalar>(world: &World, random: &mut Rng) {
    let (m, n, way) = (random.usize(..40), random.usize(..40), random.usize(..4));
    let shape = if way == 1 || way == 2 { [n, m] } else { [m, n] };
    let (a, all_a, patch) = with_patch::<T>(world, "a", shape, random);
    let vector = |name, len: usize, random: &mut Rng| {
        let all = Array1::from_shape_fn(len + 5, |_| draw::<T>(random));
        let array = spread::array::<T, Ix1>(world, name, all.raw_dim(), random);
        if world.rank() == 0 {
            array.put(.., &all).unwrap();
        }
        array.sync().unwrap();
        (array, all)
    };
    let (x, all_x) = vector("x", n, random);
    let (y, mut all_y) = vector("y", m, random);
    let (alpha, beta) = (draw::<T>(random), draw::<T>(random));
    let (operand, plain) = turned(way, a.slice(patch).unwrap().into(), view(&all_a, &patch));
    let target = y.slice(2..m + 2).unwrap();
    target.assign_product(alpha, operand, x.slice(3..n + 3).unwrap(), beta).unwrap();
    let mut place = all_y.slice_mut(s![2..m + 2]);
    let product = plain.dot(&all_x.slice(s![3..n + 3]));
    let expected = product.mapv(|value| alpha * value) + place.mapv(|value| beta * value);
    place.assign(&expected);
    assert_eq!(y.get(..).unwrap(), all_y);
    y.sync().unwrap();
    a.destroy().unwrap();
    [x, y].into_iter().for_each(|array| array.destroy().unwrap());
}

#[test]
fn products_with_vectors_agree_with_plain_ones() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(11);
        for _ in 0..15 {
            vector_agrees::<f64>(world, &mut random);
            vector_agrees::<f32>(world, &mut random);
            vector_agrees::<Complex32>(world, &mut random);
            vector_agrees::<Complex64>(world, &mut random);
        }
    });
}

#[test]
fn operands_of_other_groups_are_read_by_all() {
    for_each(2..=4, |world| {
        let mut random = Rng::with_seed(13);
        let plain = plain::<f64>(12, 12, &mut random);
        let team = world.split(Some(i64::from(world.rank() > 0)), 0).unwrap().unwrap();
        let whole = spread_out(world, "whole", &plain, &mut random);
        let part = GlobalArray::<f64>::create(&team, "part", [12, 12]).unwrap();
        part.assign_product(1.0, &whole, whole.t(), 0.0).unwrap();
        assert_eq!(part.get(..).unwrap(), plain.dot(&plain.t()));
        let [x, y] = ["x", "y"].map(|name| GlobalArray::<f64, Ix1>::create(&team, name, 12).unwrap());
        x.fill(1.0).unwrap();
        y.assign_product(2.0, &whole, &x, 0.0).unwrap();
        assert_eq!(y.get(..).unwrap(), plain.sum_axis(Axis(1)) * 2.0);
        [x, y].into_iter().for_each(|array| array.destroy().unwrap());
        part.destroy().unwrap();
        whole.sync().unwrap();
        whole.destroy().unwrap();
        team.free().unwrap();
    });
}

/// The largest absolute value.
fn largest<T: Scalar>(values: &Array2<T>) -> f64 {
    values.iter().map(|value| value.size()).fold(0.0, f64::max)
}

/// What the type's precision allows equations of this order.
fn tolerance<T: Scalar>(order: usize) -> f64 {
    let single = size_of::<T>() == 4 * (1 + usize::from(T::IS_COMPLEX));
    (if single { 1e-4 } else { 1e-12 }) * (order + 1) as f64
}

fn fraction<T: Scalar>(random: &mut Rng) -> T {
    number(random.f64() - 0.5, random.f64() - 0.5)
}

fn positive<T: Scalar>(order: usize, random: &mut Rng) -> Array2<T> {
    let any = Array2::from_shape_fn((order, order), |_| fraction::<T>(random));
    let mut product = any.dot(&conjugated(any.t()));
    for at in 0..order {
        for col in at + 1..order {
            product[[at, col]] = product[[col, at]].conjugate();
        }
        product[[at, at]] = T::of_real(product[[at, at]].real() + 1.0);
    }
    product
}

fn solutions_solve<T: Scalar>(world: &World, order: usize, random: &mut Rng) {
    let sides = random.usize(..12);
    let any = Array2::from_shape_fn((order, order), |(row, col)| {
        fraction::<T>(random) + if row == (col + 3) % order { T::of_real(2.0) } else { T::zeroed() }
    });
    let definite = positive::<T>(order, random);
    let right = Array2::from_shape_fn((order, sides), |_| fraction::<T>(random));
    let solves = |matrix: &Array2<T>, b: &GlobalArray<T>, what: &str| {
        let x = b.get(..).unwrap();
        let residual = largest(&(matrix.dot(&x) - &right)) / (largest(&x) + 1.0);
        assert!(residual < tolerance::<T>(order), "{what}: {residual:e} of {order}");
        b.sync().unwrap();
        if world.rank() == 0 {
            b.put(.., &right).unwrap();
        }
        b.sync().unwrap();
    };
    let (a, p) = (spread_out(world, "a", &any, random), spread_out(world, "p", &definite, random));
    let b = spread_out(world, "b", &right, random);
    a.lu_solve(&b).unwrap();
    solves(&any, &b, "LU");
    a.t().lu_solve(b.whole()).unwrap();
    solves(&any.t().to_owned(), &b, "LU, transposed");
    a.h().solve(b.whole()).unwrap();
    solves(&conjugated(any.t()), &b, "any, adjoint");
    p.cholesky_solve(&b).unwrap();
    solves(&definite, &b, "Cholesky");
    p.solve(&b).unwrap();
    solves(&definite, &b, "any, positive definite");
    let (lu, cholesky) = (a.lu().unwrap(), p.cholesky().unwrap());
    for _ in 0..2 {
        lu.solve(b.whole()).unwrap();
        solves(&any, &b, "kept LU");
        cholesky.solve(b.whole()).unwrap();
        solves(&definite, &b, "kept Cholesky");
    }
    lu.destroy().unwrap();
    cholesky.destroy().unwrap();
    assert_eq!(a.get(..).unwrap(), any, "factoring leaves the matrix as it is");
    a.sync().unwrap();
    p.spd_invert().unwrap();
    let unit = definite.dot(&p.get(..).unwrap()) - Array2::<T>::eye(order);
    assert!(largest(&unit) < tolerance::<T>(order), "inverse: {:e} of {order}", largest(&unit));
    p.sync().unwrap();
    [a, p, b].into_iter().for_each(|array| array.destroy().unwrap());
}

#[test]
fn solutions_solve_their_equations() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(17);
        for order in [1, 2, 15, 16, 33, 70] {
            solutions_solve::<f64>(world, order, &mut random);
        }
        solutions_solve::<f32>(world, 40, &mut random);
        solutions_solve::<Complex32>(world, 20, &mut random);
        solutions_solve::<Complex64>(world, 50, &mut random);
    });
}

#[test]
fn solutions_solve_their_equations_over_every_protocol() {
    matrix(|world| solutions_solve::<f64>(world, 45, &mut Rng::with_seed(19)));
}

#[test]
fn symmetric_matrices_that_are_not_positive_definite_are_solved_too() {
    for_each(1..=3, |world| {
        let mut random = Rng::with_seed(23);
        let any = Array2::from_shape_fn((30, 30), |_| fraction::<f64>(&mut random));
        let symmetric = &any + &any.t();
        let right = Array2::from_shape_fn((30, 2), |_| fraction::<f64>(&mut random));
        let (a, b) = (spread_out(world, "a", &symmetric, &mut random), spread_out(world, "b", &right, &mut random));
        a.solve(&b).unwrap();
        assert!(largest(&(symmetric.dot(&b.get(..).unwrap()) - right)) < 1e-9);
        b.sync().unwrap();
        [a, b].into_iter().for_each(|array| array.destroy().unwrap());
    });
}

#[test]
fn matrices_that_cannot_be_factored_are_errors_on_all_ranks_alike() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(29);
        for (order, pivot) in [(1, 0), (20, 19), (50, 3), (50, 37)] {
            let mut plain = Array2::<f64>::eye(order);
            plain[[pivot, pivot]] = 0.0;
            let a = spread_out(world, "flat", &plain, &mut random);
            let b = spread_out(world, "b", &Array2::ones((order, 3)), &mut random);
            let refused = a.lu_solve(&b).unwrap_err();
            assert!(matches!(&refused, Error::Singular { array, pivot: at } if array == "flat" && *at == pivot));
            let refused = a.cholesky_solve(&b).unwrap_err();
            assert!(matches!(refused, Error::NotPositiveDefinite { pivot: at, .. } if at == pivot));
            assert!(matches!(a.solve(&b), Err(Error::Singular { .. })));
            assert!(matches!(a.spd_invert(), Err(Error::NotPositiveDefinite { .. })));
            assert_eq!(a.get(..).unwrap(), plain);
            assert_eq!(b.get(..).unwrap(), Array2::ones((order, 3)), "{refused}");
            b.sync().unwrap();
            let wide = GlobalArray::<f64>::create(world, "wide", [order, order + 1]).unwrap();
            assert!(matches!(wide.lu(), Err(Error::Mismatch { .. })));
            assert!(matches!(wide.solve(&b), Err(Error::Mismatch { .. })));
            assert!(matches!(wide.eigvalsh(), Err(Error::Mismatch { .. })));
            a.sync().unwrap();
            [a, b, wide].into_iter().for_each(|array| array.destroy().unwrap());
        }
    });
}

fn vectors_are_eigenvectors<T: Scalar>(world: &World, order: usize, random: &mut Rng) {
    let any = Array2::from_shape_fn((order, order), |_| fraction::<T>(random));
    let hermitian = &any + &conjugated(any.t());
    let metric = positive::<T>(order, random);
    let (a, m) = (spread_out(world, "a", &hermitian, random), spread_out(world, "s", &metric, random));
    let vectors = spread::array::<T, Ix2>(world, "vectors", ndarray::Dim([order, order]), random);
    let good = |values: &Array1<T::Real>, metric: &Array2<T>, what: &str| {
        let x = vectors.get(..).unwrap();
        let values = values.mapv(|value| value.real());
        assert!(values.as_slice().unwrap().is_sorted(), "{what}");
        let scaled = metric.dot(&x) * values.mapv(T::of_real);
        let found = largest(&(hermitian.dot(&x) - scaled)) / (largest(&x) + 1.0);
        assert!(found < 10.0 * tolerance::<T>(order), "{what}: {found:e} of {order}");
        let unit = conjugated(x.t()).dot(&metric.dot(&x)) - Array2::<T>::eye(order);
        assert!(largest(&unit) < 10.0 * tolerance::<T>(order), "{what}: {:e} of {order}", largest(&unit));
        vectors.sync().unwrap();
    };
    let values = a.eigh(&vectors).unwrap();
    good(&values, &Array2::eye(order), "standard");
    let alone = a.eigvalsh().unwrap();
    assert!(values.iter().zip(&alone).all(|(a, b)| (a.real() - b.real()).abs() < 10.0 * tolerance::<T>(order)));
    let values = a.eigh_generalized(&m, &vectors).unwrap();
    good(&values, &metric, "generalized");
    [a, m, vectors].into_iter().for_each(|array| array.destroy().unwrap());
}

#[test]
fn eigenvectors_are_orthonormal_and_their_values_ascend() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(31);
        for order in [0, 1, 2, 3, 20, 37] {
            vectors_are_eigenvectors::<f64>(world, order, &mut random);
        }
        vectors_are_eigenvectors::<f32>(world, 12, &mut random);
        vectors_are_eigenvectors::<Complex32>(world, 13, &mut random);
        vectors_are_eigenvectors::<Complex64>(world, 25, &mut random);
    });
}

#[test]
fn eigenproblems_that_cannot_be_solved_are_errors_on_all_ranks_alike() {
    for_each(1..=3, |world| {
        let mut random = Rng::with_seed(37);
        let a = spread_out(world, "a", &Array2::<f64>::eye(9), &mut random);
        let zero = spread_out(world, "zero", &Array2::<f64>::zeros((9, 9)), &mut random);
        let vectors = zero.duplicate("vectors").unwrap();
        let refused = a.eigh_generalized(&zero, &vectors).unwrap_err();
        assert!(matches!(refused, Error::NotPositiveDefinite { array, pivot: 0 } if array == "zero"));
        a.fill(f64::NAN).unwrap();
        assert!(matches!(a.eigh(&vectors), Err(Error::NoConvergence { .. })));
        a.fill(f64::INFINITY).unwrap();
        assert!(matches!(a.eigvalsh(), Err(Error::NoConvergence { .. })));
        [a, zero, vectors].into_iter().for_each(|array| array.destroy().unwrap());
    });
}
