//! Names the shared library, so that a program asks for `libarmci.so` and not for the path it was linked from.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libarmci.so");
    println!("cargo::rerun-if-changed=build.rs");
}
