//! Element types, and arithmetic to hold that of arrays against: said with the types' own operators.

use armci_core::World;
use fastrand::Rng;
use global_arrays::{Element, GlobalArray, Patch};
use ndarray::{Array, ArrayD, Dimension, Slice};
use num_complex::{Complex, Complex32, Complex64};

use crate::spread;

/// A type of element, with small whole numbers: sums of them are exact in any order.
pub trait Sample: Element + PartialEq + std::fmt::Debug {
    /// A number.
    fn draw(random: &mut Rng) -> Self;
    /// A number by which quotients of whole numbers are exact, or cut alike.
    fn draw_divisor(random: &mut Rng) -> Self;
    /// `self + other`.
    fn and(self, other: Self) -> Self;
    /// `self * other`.
    fn by(self, other: Self) -> Self;
    /// `self / other`.
    fn over(self, other: Self) -> Self;
    /// The square of the absolute value.
    fn square(self) -> f64;
    /// The absolute value, as such a number.
    fn modulus(self) -> Self;
    /// The conjugate.
    fn mirrored(self) -> Self;
    /// Such a number.
    fn whole(number: i32) -> Self;
    /// Larger numbers have larger ones.
    fn key(self) -> f64;
}

macro_rules! reals {
    ($($number:ty: $divisors:expr),*) => {$(
        impl Sample for $number {
            fn draw(random: &mut Rng) -> Self {
                random.i32(-20..=20) as $number
            }
            fn draw_divisor(random: &mut Rng) -> Self {
                $divisors[random.usize(..4)]
            }
            fn and(self, other: Self) -> Self {
                self + other
            }
            fn by(self, other: Self) -> Self {
                self * other
            }
            fn over(self, other: Self) -> Self {
                self / other
            }
            fn square(self) -> f64 {
                self as f64 * self as f64
            }
            fn modulus(self) -> Self {
                self.abs()
            }
            fn mirrored(self) -> Self {
                self
            }
            fn whole(number: i32) -> Self {
                number as $number
            }
            fn key(self) -> f64 {
                self as f64
            }
        }
    )*};
}
reals!(i32: [1, -2, 3, 7], i64: [1, -2, 3, 7], f32: [1.0, -2.0, 3.0, 7.0], f64: [1.0, -2.0, 3.0, 7.0]);

macro_rules! complexes {
    ($($number:ty: $real:ty),*) => {$(
        impl Sample for $number {
            fn draw(random: &mut Rng) -> Self {
                Complex::new(random.i32(-9..=9) as $real, random.i32(-9..=9) as $real)
            }
            fn draw_divisor(random: &mut Rng) -> Self {
                [Complex::new(1.0, 0.0), Complex::new(0.0, -2.0), Complex::new(4.0, 0.0), Complex::new(2.0, 2.0)]
                    [random.usize(..4)]
            }
            fn and(self, other: Self) -> Self {
                self + other
            }
            fn by(self, other: Self) -> Self {
                self * other
            }
            fn over(self, other: Self) -> Self {
                self / other
            }
            fn square(self) -> f64 {
                f64::from(self.norm_sqr())
            }
            fn modulus(self) -> Self {
                Complex::new(self.norm(), 0.0)
            }
            fn mirrored(self) -> Self {
                self.conj()
            }
            fn whole(number: i32) -> Self {
                Complex::new(number as $real, 0.0)
            }
            fn key(self) -> f64 {
                f64::from(self.norm_sqr())
            }
        }
    )*};
}
complexes!(Complex32: f32, Complex64: f64);

/// An array of a random distribution, with random elements, and a plain array of the same. Collective.
///
/// # Panics
/// If it cannot be made.
pub fn mirror<T: Sample, D: Dimension>(
    world: &World,
    shape: D,
    random: &mut Rng,
    draw: impl Fn(&mut Rng) -> T,
) -> (GlobalArray<T, D>, ArrayD<T>) {
    let array = spread::array::<T, D>(world, "mirrored", shape.clone(), random);
    let plain = Array::from_shape_fn(shape, |_| draw(random));
    if world.rank() == 0 {
        array.put(.., &plain).unwrap_or_else(|error| panic!("{error}"));
    }
    array.sync().unwrap_or_else(|error| panic!("{error}"));
    (array, plain.into_dyn())
}

/// The shape of an array that has a patch of this shape somewhere, and where.
pub fn around<D: Dimension>(shape: &[usize], random: &mut Rng) -> (D, Patch) {
    let mut outer = D::zeros(shape.len());
    let ranges: Vec<_> = shape
        .iter()
        .enumerate()
        .map(|(axis, len)| {
            let start = random.usize(..3);
            outer[axis] = start + len + random.usize(..3);
            start..start + len
        })
        .collect();
    (outer, Patch::new(&ranges))
}

/// A patch of a plain array.
pub fn patch_of<T: Clone>(plain: &ArrayD<T>, patch: &Patch) -> ArrayD<T> {
    plain.slice_each_axis(|axis| Slice::from(patch.range(axis.axis.index()))).to_owned()
}

/// Writes a patch of a plain array.
pub fn set_patch<T: Clone>(plain: &mut ArrayD<T>, patch: &Patch, values: &ArrayD<T>) {
    plain.slice_each_axis_mut(|axis| Slice::from(patch.range(axis.axis.index()))).assign(values);
}

/// Calls a generic function for each element type.
#[macro_export]
macro_rules! each_type {
    ($call:ident($($argument:expr),* $(,)?)) => {
        $call::<i32>($($argument),*);
        $call::<i64>($($argument),*);
        $call::<f32>($($argument),*);
        $call::<f64>($($argument),*);
        $call::<num_complex::Complex32>($($argument),*);
        $call::<num_complex::Complex64>($($argument),*);
    };
}
