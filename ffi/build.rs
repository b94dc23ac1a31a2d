//! Names the shared library, so that a program asks for `libarmci.so.1` and not for the path it was linked from. The
//! number changes when a program that was linked with the library would no longer run with it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libarmci.so.1");
    println!("cargo::rerun-if-changed=build.rs");
}
