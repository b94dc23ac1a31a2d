//! What one rank does of a factorization: panels, and substitution.
//!
//! All of it halves its matrices until they are [`NARROW`], so that nearly all work is products, at their speed. Rows are
//! contiguous in our matrices, so the narrow ends go row by row.

use ndarray::linalg::{general_mat_mul, general_mat_vec_mul};
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, CowArray, Ix2, s};

use super::scalar::Scalar;

/// Where halving ends.
const NARROW: usize = 16;

/// `c = c - a b`.
pub(super) fn subtract_product<T: Scalar>(c: &mut ArrayViewMut2<'_, T>, a: &ArrayView2<'_, T>, b: &ArrayView2<'_, T>) {
    if b.ncols() == 1 {
        general_mat_vec_mul(-T::one(), a, &b.column(0), T::one(), &mut c.column_mut(0));
    } else {
        general_mat_mul(-T::one(), a, b, T::one(), c);
    }
}

/// The adjoint: a view of real numbers, a copy of complex ones.
pub(super) fn adjoint<'a, T: Scalar>(matrix: ArrayView2<'a, T>) -> CowArray<'a, T, Ix2> {
    if T::IS_COMPLEX { matrix.t().mapv(T::conjugate).into() } else { matrix.reversed_axes().into() }
}

/// Whether the diagonal of a triangular matrix is ones, which are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Diagonal {
    Ones,
    Stored,
}

/// Replaces `b` by the solution of `l x = b`; what lies above the diagonal of `l` is not looked at.
pub(super) fn solve_lower<T: Scalar>(l: &ArrayView2<'_, T>, diagonal: Diagonal, mut b: ArrayViewMut2<'_, T>) {
    let order = l.nrows();
    if order > NARROW {
        let half = order / 2;
        let (mut above, mut below) = b.split_at(Axis(0), half);
        solve_lower(&l.slice(s![..half, ..half]), diagonal, above.view_mut());
        subtract_product(&mut below, &l.slice(s![half.., ..half]), &above.view());
        return solve_lower(&l.slice(s![half.., half..]), diagonal, below);
    }
    for at in 0..order {
        let (above, mut below) = b.view_mut().split_at(Axis(0), at);
        let mut row = below.row_mut(0);
        for (known, factor) in above.rows().into_iter().zip(l.row(at)) {
            row.scaled_add(-*factor, &known);
        }
        if diagonal == Diagonal::Stored {
            let pivot = l[[at, at]];
            row.mapv_inplace(|value| value / pivot);
        }
    }
}

/// Replaces `b` by the solution of `u x = b`; what lies below the diagonal of `u` is not looked at.
pub(super) fn solve_upper<T: Scalar>(u: &ArrayView2<'_, T>, b: ArrayViewMut2<'_, T>) {
    // Read backwards, an upper triangle is a lower one.
    solve_lower(&u.slice(s![..;-1, ..;-1]), Diagonal::Stored, b.slice_move(s![..;-1, ..]));
}

/// Factors a panel (no wider than high) into its unit lower and upper triangular parts, in place, with its rows permuted:
/// `swaps[i]` is the row that row `i` was exchanged with. Or says which column has no pivot.
pub(super) fn factor_lu<T: Scalar>(mut panel: ArrayViewMut2<'_, T>, swaps: &mut [usize]) -> Result<(), usize> {
    let width = panel.ncols();
    if width <= NARROW {
        return factor_narrow_lu(panel, swaps);
    }
    let half = width / 2;
    let (left_swaps, right_swaps) = swaps.split_at_mut(half);
    let (mut left, mut right) = panel.view_mut().split_at(Axis(1), half);
    factor_lu(left.view_mut(), left_swaps)?;
    swap_rows(&mut right, left_swaps);
    let (mut above, mut below) = right.split_at(Axis(0), half);
    solve_lower(&left.slice(s![..half, ..]), Diagonal::Ones, above.view_mut());
    subtract_product(&mut below, &left.slice(s![half.., ..]), &above.view());
    factor_lu(below, right_swaps).map_err(|column| column + half)?;
    swap_rows(&mut left.slice_mut(s![half.., ..]), right_swaps);
    for swap in right_swaps {
        *swap += half;
    }
    Ok(())
}

fn factor_narrow_lu<T: Scalar>(mut panel: ArrayViewMut2<'_, T>, swaps: &mut [usize]) -> Result<(), usize> {
    for (at, swap) in swaps.iter_mut().enumerate() {
        let sizes = panel.slice(s![at.., at]).into_iter().map(|value| value.size()).enumerate();
        // The largest; of none that is a number, the first.
        let (below, size) = sizes.fold((0, -1.0), |best, next| if next.1 > best.1 { next } else { best });
        // (Not a number is no pivot either.)
        if size.is_nan() || size <= 0.0 {
            return Err(at);
        }
        *swap = at + below;
        swap_row(&mut panel, at, at + below);
        let (above, mut below) = panel.view_mut().split_at(Axis(0), at + 1);
        let (pivot, ahead) = (above[[at, at]], above.slice(s![at, at + 1..]));
        for mut row in below.rows_mut() {
            let factor = row[at] / pivot;
            row[at] = factor;
            row.slice_mut(s![at + 1..]).scaled_add(-factor, &ahead);
        }
    }
    Ok(())
}

/// Exchanges each row with the one that `swaps` has for it, in turn.
pub(super) fn swap_rows<T: Scalar>(matrix: &mut ArrayViewMut2<'_, T>, swaps: &[usize]) {
    for (row, other) in swaps.iter().enumerate() {
        swap_row(matrix, row, *other);
    }
}

fn swap_row<T: Scalar>(matrix: &mut ArrayViewMut2<'_, T>, row: usize, other: usize) {
    if row != other {
        let (above, below) = matrix.view_mut().split_at(Axis(0), row.max(other));
        let exchange = |mut a: ArrayViewMut1<'_, T>, b: ArrayViewMut1<'_, T>| {
            a.iter_mut().zip(b).for_each(|(a, b)| std::mem::swap(a, b));
        };
        let (mut above, mut below) = (above, below);
        exchange(above.row_mut(row.min(other)), below.row_mut(0));
    }
}

/// Makes of a panel (no wider than high), which begins on the diagonal of a Hermitian matrix, the panel of the lower
/// Cholesky factor, in place. Or says which pivot is not positive. What lies above the diagonal is not looked at, but overwritten.
pub(super) fn factor_cholesky<T: Scalar>(mut panel: ArrayViewMut2<'_, T>) -> Result<(), usize> {
    let width = panel.ncols();
    if width <= NARROW {
        return factor_narrow_cholesky(panel);
    }
    let half = width / 2;
    let (mut left, mut right) = panel.view_mut().split_at(Axis(1), half);
    factor_cholesky(left.view_mut())?;
    let mut below = right.slice_mut(s![half.., ..]);
    subtract_product(&mut below, &left.slice(s![half.., ..]), &adjoint(left.slice(s![half..width, ..])).view());
    factor_cholesky(below).map_err(|pivot| pivot + half)
}

fn factor_narrow_cholesky<T: Scalar>(mut panel: ArrayViewMut2<'_, T>) -> Result<(), usize> {
    let width = panel.ncols();
    for at in 0..width {
        let pivot = panel[[at, at]].real();
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(at);
        }
        let root = T::of_real(pivot.sqrt());
        panel[[at, at]] = root;
        panel.slice_mut(s![at + 1.., at]).mapv_inplace(|value| value / root);
        let ahead: Vec<T> = panel.slice(s![at + 1..width, at]).iter().map(|value| value.conjugate()).collect();
        for mut row in panel.slice_mut(s![at + 1.., ..]).rows_mut() {
            let factor = row[at];
            for (value, ahead) in row.slice_mut(s![at + 1..]).iter_mut().zip(&ahead) {
                *value = *value - factor * *ahead;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn panels_of_any_width_multiply_to_what_they_were() {
        for (rows, cols) in [(1, 1), (5, 3), (40, 16), (40, 17), (77, 64), (100, 100)] {
            let mut state = 1u64;
            let mut draw = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as f64 / f64::from(1 << 24) - 0.5
            };
            let plain = Array2::from_shape_fn((rows, cols), |_| draw());
            let (mut factored, mut swaps) = (plain.clone(), vec![0; cols]);
            factor_lu(factored.view_mut(), &mut swaps).unwrap();
            let lower = Array2::from_shape_fn((rows, cols), |(i, j)| match i.cmp(&j) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Greater => factored[[i, j]],
            });
            assert!(lower.iter().all(|value| value.abs() <= 1.0), "pivots are the largest");
            let upper = Array2::from_shape_fn((cols, cols), |(i, j)| if i <= j { factored[[i, j]] } else { 0.0 });
            let mut permuted = plain.clone();
            swap_rows(&mut permuted.view_mut(), &swaps);
            assert!((lower.dot(&upper) - &permuted).iter().all(|value| value.abs() < 1e-12));

            let square = plain.dot(&plain.t()) + Array2::<f64>::eye(rows);
            let mut factor = square.slice(s![.., ..cols]).to_owned();
            factor_cholesky(factor.view_mut()).unwrap();
            let lower = Array2::from_shape_fn((rows, cols), |(i, j)| if i >= j { factor[[i, j]] } else { 0.0 });
            let product = lower.dot(&lower.slice(s![..cols, ..]).t());
            assert!((product - square.slice(s![.., ..cols])).iter().all(|value| value.abs() < 1e-12));
        }
    }

    #[test]
    fn the_pivot_that_fails_is_told() {
        let mut matrix = Array2::<f64>::eye(50);
        matrix[[33, 33]] = 0.0;
        assert_eq!(factor_lu(matrix.clone().view_mut(), &mut [0; 50]), Err(33));
        assert_eq!(factor_cholesky(matrix.view_mut()), Err(33));
        assert_eq!(factor_lu(Array2::from_elem((20, 20), f64::NAN).view_mut(), &mut [0; 20]), Err(0));
    }
}
