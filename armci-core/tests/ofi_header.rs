//! Our declarations of libfabric are those of the installed headers.

mod headers;

use armci_core::libfabric_abi::{FACTS, OFFSETS, OFFSETS_HERE, OPERATIONS};
use headers::Headers;

const HEADERS: [&str; 6] =
    ["rdma/fabric.h", "rdma/fi_domain.h", "rdma/fi_endpoint.h", "rdma/fi_cm.h", "rdma/fi_rma.h", "rdma/fi_errno.h"];

#[test]
fn our_declarations_of_libfabric_are_the_headers() {
    let Some(headers) = Headers::find("libfabric", &HEADERS, "libfabric-dev") else { return };
    assert_eq!(OFFSETS.len(), OFFSETS_HERE.len());
    let offsets = OFFSETS.iter().copied().zip(OFFSETS_HERE.iter().copied());
    let facts: Vec<_> = FACTS.iter().copied().chain(offsets).collect();
    headers.hold(&facts, OPERATIONS);
}
