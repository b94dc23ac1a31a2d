//! What this library looks like to C, as data.
//!
//! `c_functions!` defines the exported functions and, from the same lines, a table of their C types;
//! `c_constants!` likewise. A test prints these tables as C, and compiles that against our `armci.h` and, where it
//! is installed, against that of ARMCI-MPI, whose constants and layouts these are: neither can drift away from the
//! other unnoticed.
//!
//! # Safety
//! EXPORT: an exported name is one of ARMCI's, which no program that links an ARMCI defines by itself; the table would
//! show a second definition here.

use std::ffi::{c_char, c_double, c_float, c_int, c_long, c_void};

use crate::{life, memory, message, one_sided, rmw, strided, sync, value, vector};

/// A type that C has too.
pub trait CType {
    /// How C spells it.
    fn spelling() -> String;
}

macro_rules! spelled {
    ($($type:ty = $spelling:literal),* $(,)?) => {$(
        impl CType for $type {
            fn spelling() -> String {
                $spelling.into()
            }
        }
    )*};
}
spelled! {
    () = "void",
    c_void = "void",
    c_char = "char",
    c_int = "int",
    c_long = "long",
    LongLong = "long long",
    c_float = "float",
    c_double = "double",
    vector::armci_giov_t = "armci_giov_t",
}

impl<T: CType> CType for *mut T {
    fn spelling() -> String {
        format!("{} *", T::spelling())
    }
}

impl<T: CType> CType for *const T {
    fn spelling() -> String {
        format!("const {} *", T::spelling())
    }
}

/// C's `long long`, which Rust does not tell from its `long`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct LongLong(pub i64);

/// An exported function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What it returns, in C.
    pub returns: String,
    /// What it takes, in C.
    pub arguments: Vec<String>,
}

/// A constant of the header.
#[derive(Debug)]
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: c_int,
}

/// A type of the header, or a field of one.
#[derive(Debug)]
pub struct Layout {
    /// The type.
    pub name: &'static str,
    /// Its size.
    pub size: usize,
    /// Its fields, and where they are.
    pub fields: &'static [(&'static str, usize)],
}

/// Everything this library exports.
pub fn functions() -> Vec<Function> {
    let rooms = [life::functions, memory::functions, one_sided::functions, strided::functions, vector::functions];
    let more = [value::functions, rmw::functions, sync::functions, message::functions];
    rooms.iter().chain(&more).flat_map(|room| room()).collect()
}

/// Every constant.
pub fn constants() -> Vec<Constant> {
    [one_sided::constants(), rmw::constants()].into_iter().flatten().collect()
}

/// Every type.
pub fn layouts() -> Vec<Layout> {
    vec![vector::LAYOUT, Layout { name: "armci_size_t", size: size_of::<memory::armci_size_t>(), fields: &[] }]
}

/// Defines exported functions, and `functions()`, the table of them.
///
/// Each is a `code` (0 or not) or an `answer` (a value, or the end of the job); its body is a closure without
/// arguments that returns a `Result`.
macro_rules! c_functions {
    ($($(#[$doc:meta])+ $kind:ident fn $name:ident($($argument:ident: $type:ty),*) $(-> $returns:ty)? = $body:expr;)*) => {
        $(
            $(#[$doc])+
            ///
            /// # Safety
            /// What `armci.h` says of this function holds: each pointer is valid for what is read or written there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $returns)? {
                $crate::entry::$kind(stringify!($name), $body)
            }
        )*

        #[doc(hidden)]
        pub fn functions() -> Vec<$crate::abi::Function> {
            use $crate::abi::{CType, Function, c_functions};
            vec![$(Function {
                name: stringify!($name),
                returns: <c_functions!(@ $($returns)?) as CType>::spelling(),
                arguments: vec![$(<$type as CType>::spelling()),*],
            }),*]
        }
    };
    (@ $returns:ty) => { $returns };
    (@) => { () };
}

/// Defines constants, and `constants()`, the table of them.
macro_rules! c_constants {
    ($($(#[$doc:meta])+ $name:ident = $value:literal;)*) => {
        $(
            $(#[$doc])+
            pub const $name: std::ffi::c_int = $value;
        )*

        #[doc(hidden)]
        pub fn constants() -> Vec<$crate::abi::Constant> {
            vec![$($crate::abi::Constant { name: stringify!($name), value: $name }),*]
        }
    };
}

pub(crate) use {c_constants, c_functions};
