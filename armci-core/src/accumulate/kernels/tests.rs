//! Every width of vector against the arithmetic spelled out, to the bit.

use super::*;
use crate::copy::isa::{Level, isa};
use proptest::prelude::*;
use std::fmt::Debug;

const GUARD: usize = 4;

/// Values at any byte alignment, with guards around them.
struct Numbers {
    bytes: Vec<u8>,
    start: usize,
}

impl Numbers {
    fn new<T: Accumulate>(values: &[T], offset: usize) -> Self {
        let size = size_of::<T>();
        let mut bytes = vec![0xa5; (values.len() + 2 * GUARD) * size + offset + 64];
        let start = GUARD * size + (64 - (bytes.as_ptr() as usize + GUARD * size) % 64) % 64 + offset;
        bytes[start..start + size_of_val(values)].copy_from_slice(bytemuck::cast_slice(values));
        Numbers { bytes, start }
    }

    fn at<T>(&mut self) -> *mut T {
        self.bytes[self.start..].as_mut_ptr().cast()
    }
}

/// The definition.
fn spelled_out<T: Accumulate>(y: &[T], x: &[T], alpha: T) -> Vec<T> {
    y.iter().zip(x).map(|(&y, &x)| T::plus(y, if alpha == T::ONE { x } else { T::times(alpha, x) })).collect()
}

fn check<T: Accumulate + Debug>(y: &[T], x: &[T], alpha: T, dst_at: usize, src_at: usize) {
    type Go<T> = unsafe fn(*mut T, *const T, usize, T);
    let mut ways: Vec<Go<T>> = vec![T::accumulate, loops::narrow];
    #[cfg(target_arch = "x86_64")]
    if isa().level >= Level::Avx2 {
        ways.push(loops::avx2);
    }
    #[cfg(target_arch = "x86_64")]
    if isa().level >= Level::Avx512 {
        ways.push(loops::avx512);
    }
    ways.push(|dst, src, n, alpha| {
        // SAFETY: called like the others.
        unsafe {
            accumulate_bytes(T::KIND, dst.cast(), src.cast(), n * size_of::<T>(), &alpha_bytes(alpha));
        }
    });
    let result = spelled_out(y, x, alpha);
    for (number, go) in ways.into_iter().enumerate() {
        let mut src = Numbers::new(x, src_at);
        let mut dst = Numbers::new(y, dst_at * align_of::<T>());
        let mut expected = dst.bytes.clone();
        expected[dst.start..dst.start + size_of_val(y)].copy_from_slice(bytemuck::cast_slice(&result));
        // SAFETY: both hold as many elements, at a level this processor has.
        unsafe { go(dst.at(), src.at(), y.len(), alpha) };
        assert!(dst.bytes == expected, "{:?}, way {number}, {} elements, alpha {alpha:?}", T::KIND, y.len());
    }
}

/// Pairs of equally many values.
fn pairs<T: Debug + Clone>(value: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    (0usize..200)
        .prop_flat_map(move |n| (prop::collection::vec(value.clone(), n), prop::collection::vec(value.clone(), n)))
}

/// Magnitudes whose products and sums overflow, underflow and cancel, but make no NaN.
fn real() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![-1e3..1e3f64, -1e-300..1e-300f64, Just(0.0), Just(-0.0), Just(1e150), Just(1.0)]
}

fn single() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![-1e3..1e3f32, -1e-38..1e-38f32, Just(0.0), Just(-0.0), Just(1e15), Just(1.0)]
}

macro_rules! to_the_bit {
    ($($name:ident: $value:expr, $one:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(200))]
            $(
                #[test]
                fn $name((y, x) in pairs($value), alpha in prop_oneof![3 => $value, 1 => Just($one)], dst_at in 0usize..17, src_at in 0usize..65) {
                    check(&y, &x, alpha, dst_at, src_at);
                }
            )*
        }
    };
}

to_the_bit! {
    integers_wrap_alike_at_every_width: any::<i32>(), 1;
    longs_wrap_alike_at_every_width: any::<i64>(), 1;
    singles_round_alike_at_every_width: single(), 1.0;
    doubles_round_alike_at_every_width: real(), 1.0;
    single_complexes_round_alike_at_every_width: (single(), single()).prop_map(|(re, im)| Complex32::new(re, im)), Complex32::new(1.0, 0.0);
    double_complexes_round_alike_at_every_width: (real(), real()).prop_map(|(re, im)| Complex64::new(re, im)), Complex64::new(1.0, 0.0);
}

#[test]
fn every_length_and_alignment_is_exact() {
    let x: Vec<f64> = (0..200).map(|i| 0.1 + f64::from(i) * 0.37).collect();
    let y: Vec<f64> = (0..200).map(|i| 7.3 - f64::from(i) * 1.1).collect();
    for n in 0..200 {
        for at in 0..9 {
            check(&y[..n], &x[..n], 0.3, at, 8 - at);
            check(&y[..n], &x[..n], 1.0, at, at);
        }
    }
}

#[test]
fn nothing_is_fused() {
    // 1 + (1+e)(1-e) differs by the last bit when the product keeps its low half.
    let e = f64::EPSILON;
    let (y, x, alpha) = ([-1.0; 64], [1.0 - e; 64], 1.0 + e);
    assert_ne!(f64::mul_add(alpha, x[0], y[0]), y[0] + alpha * x[0]);
    check(&y, &x, alpha, 0, 0);
}

#[test]
fn a_target_added_to_itself_doubles() {
    for n in [1, 2, 7, 64, 1000] {
        let mut y: Vec<i64> = (0..n).collect();
        let at = y.as_mut_ptr();
        // SAFETY: `n` elements, source and target the same.
        unsafe { i64::accumulate(at, at, y.len(), 1) };
        assert!(y.iter().enumerate().all(|(i, &y)| y == 2 * i as i64));
    }
}

#[test]
fn bytes_short_of_an_element_are_left_out() {
    let mut y = [1.0f64, 2.0];
    let x = [10.0f64, 20.0];
    // SAFETY: fewer bytes than both arrays hold.
    unsafe {
        accumulate_bytes(ElementKind::F64, y.as_mut_ptr().cast(), x.as_ptr().cast(), 15, &alpha_bytes(2.0f64));
    };
    assert_eq!(y, [21.0, 2.0]);
}
