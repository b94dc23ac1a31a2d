//! The dense library: the one place that names it. (`faer`, on one thread: 1,000 rows take 0.11 s, 500 take 0.02 s.)

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::traits::ComplexField;
use faer::{Mat, Par};
use ndarray::{Array2, ArrayView2};

/// The eigenvalues, ascending, and if wanted the eigenvectors, as columns, of the Hermitian matrix whose lower triangle this is.
pub(crate) fn eigen<T: ComplexField + Copy, R>(
    lower: ArrayView2<'_, T>,
    vectors: bool,
    real: impl Fn(T) -> R,
) -> Option<(Vec<R>, Array2<T>)> {
    let order = lower.nrows();
    if order == 0 {
        // The library subtracts 1 from it.
        return Some((Vec::new(), Array2::from_shape_fn((0, 0), |at| lower[at])));
    }
    let matrix = Mat::from_fn(order, order, |row, col| lower[[row, col]]);
    let mut values = Diag::<T>::zeros(order);
    let wanted = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut found = Mat::<T>::zeros(if vectors { order } else { 0 }, if vectors { order } else { 0 });
    // The thread that joined alone: the node's other cores belong to other ranks.
    let parallelism = Par::Seq;
    let scratch = evd::self_adjoint_evd_scratch::<T>(order, wanted, parallelism, Default::default());
    let mut memory = MemBuffer::new(scratch);
    evd::self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        vectors.then(|| found.as_mut()),
        parallelism,
        MemStack::new(&mut memory),
        Default::default(),
    )
    .ok()?;
    let found = Array2::from_shape_fn((found.nrows(), found.ncols()), |(row, col)| found[(row, col)]);
    Some((values.column_vector().iter().map(|value| real(*value)).collect(), found))
}
