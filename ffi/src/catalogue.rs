//! Everything this library exports, collected from the rooms that define it: for the test that holds the headers
//! against it, and for the table of the documentation.

use crate::abi::{Constant, Function, Layout};
use crate::{
    access, collective, contiguous, domain, gop, group, handle, life, local, memory, mutex, notify, pack, rmw, select,
    strided, sync, tagged, value, vector,
};

/// Every function.
pub fn functions() -> Vec<Function> {
    let rooms: &[fn() -> Vec<Function>] = &[
        life::functions,
        memory::functions,
        local::functions,
        access::functions,
        contiguous::functions,
        strided::functions,
        vector::functions,
        value::functions,
        pack::functions,
        handle::functions,
        sync::functions,
        rmw::functions,
        mutex::functions,
        notify::functions,
        group::functions,
        domain::functions,
        collective::functions,
        gop::functions,
        select::functions,
        tagged::functions,
    ];
    rooms.iter().flat_map(|room| room()).collect()
}

/// Every constant.
pub fn constants() -> Vec<Constant> {
    [contiguous::constants(), rmw::constants(), domain::constants(), collective::constants(), gop::constants()]
        .into_iter()
        .flatten()
        .collect()
}

/// Every type, except `ARMCI_Group`, whose layout depends on the MPI: `group::LAYOUTS`.
pub fn layouts() -> Vec<Layout> {
    vec![
        vector::LAYOUT,
        handle::LAYOUT,
        Layout { name: "armci_size_t", size: size_of::<memory::armci_size_t>(), fields: &[] },
        Layout { name: "armci_domain_t", size: size_of::<domain::armci_domain_t>(), fields: &[] },
    ]
}
