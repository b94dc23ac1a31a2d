//! Programs that use a buffer while an operation has it must not compile.

#[test]
fn a_buffer_in_flight_cannot_be_used() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
