//! How this library is told to C: the macros that define what is exported, and from the same lines tables of it.
//!
//! `c_functions!` defines exported functions and a table of their C types, `c_constants!` constants and theirs. A test
//! prints these tables as C, and compiles that against our `armci.h` and, where it is installed, against that of
//! ARMCI-MPI, whose constants and layouts these are: neither can drift away from the other unnoticed. This room knows
//! no other; `catalogue` collects the tables.
//!
//! # Safety
//! EXPORT: an exported name is one of ARMCI's, which no program that links an ARMCI defines by itself; the table would
//! show a second definition here.

use std::ffi::{c_char, c_double, c_float, c_int, c_long, c_ulong, c_void};

/// A type that C has too.
pub trait CType {
    /// How C spells it.
    fn spelling() -> String;
}

macro_rules! spelled {
    ($($type:ty = $spelling:literal),* $(,)?) => {$(
        impl $crate::abi::CType for $type {
            fn spelling() -> String {
                $spelling.into()
            }
        }
    )*};
}
pub(crate) use spelled;
spelled! {
    () = "void",
    c_void = "void",
    c_char = "char",
    c_int = "int",
    c_long = "long",
    c_ulong = "unsigned long",
    LongLong = "long long",
    c_float = "float",
    c_double = "double",
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
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The name under which a profiler calls it, while it defines the other itself.
    pub twin: Option<&'static str>,
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

/// Defines exported functions, and `functions()`, the table of them.
///
/// Each is a `code` (0 or not), a `pointer` (or NULL) or an `answer` (a value, or the end of the job); its body is a closure without
/// arguments that returns a `Result` (where nanoseconds count, a `move` closure: the arguments may cross `catch_unwind` in
/// memory, and references to them would be a second way round). `NAME = TWIN` exports it under both names, each of which a program may define
/// for itself: neither calls the other.
macro_rules! c_functions {
    ($(
        $(#[$doc:meta])+
        $kind:ident fn $name:ident $(= $twin:ident)? ($($argument:ident: $type:ty),* $(,)?) $(-> $returns:ty)? = $body:expr;
    )*) => {
        $(
            // The body once, under a name that nobody outside can take for its own.
            #[allow(clippy::missing_safety_doc, clippy::too_many_arguments, unused_imports)]
            mod $name {
                use super::*;

                #[inline]
                pub(super) unsafe fn run($($argument: $type),*) $(-> $returns)? {
                    $crate::entry::$kind(stringify!($name), $body)
                }
            }

            $(#[$doc])+
            ///
            /// # Safety
            /// What `armci.h` says of this function holds: each pointer is valid for what is read or written there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $returns)? {
                // SAFETY: passed on.
                unsafe { $name::run($($argument),*) }
            }

            $crate::abi::c_functions!(@twin [$($twin)?] $name ($($argument: $type),*) [$($returns)?]);
        )*

        #[doc(hidden)]
        pub fn functions() -> Vec<$crate::abi::Function> {
            use $crate::abi::{CType, Function, c_functions};
            vec![$(Function {
                name: stringify!($name),
                twin: c_functions!(@name $($twin)?),
                returns: <c_functions!(@type $($returns)?) as CType>::spelling(),
                arguments: vec![$(<$type as CType>::spelling()),*],
            }),*]
        }
    };
    (@twin [] $($rest:tt)*) => {};
    (@twin [$twin:ident] $name:ident ($($argument:ident: $type:ty),*) [$($returns:ty)?]) => {
        #[doc = concat!("[`", stringify!($name), "`], for profilers.")]
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $twin($($argument: $type),*) $(-> $returns)? {
            // SAFETY: passed on.
            unsafe { $name::run($($argument),*) }
        }
    };
    (@name $twin:ident) => { Some(stringify!($twin)) };
    (@name) => { None };
    (@type $returns:ty) => { $returns };
    (@type) => { () };
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
