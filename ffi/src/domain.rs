//! Who shares memory with whom.
//!
//! # Safety
//! EXPORT (see `abi`); nothing else here is unsafe.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_ulong};

use armci_core::{Error, Result, World};

use crate::abi::{c_constants, c_functions};
use crate::arguments::{rank, unknown};
use crate::member::world;

/// A kind of domain.
pub type armci_domain_t = c_int;

c_constants! {
    /// The ranks of a node.
    ARMCI_DOMAIN_SMP = 0;
}

c_functions! {
    /// How many ranks domain `id` has; this rank's, if that is negative.
    answer fn armci_domain_nprocs(domain: armci_domain_t, id: c_int) -> c_int = || {
        let world = known(domain)?;
        let id = if id < 0 { world.node_of(world.rank())? } else { id as usize };
        Ok(ranks(world, id)?.len() as c_int)
    };

    /// The domain of a rank.
    answer fn armci_domain_id(domain: armci_domain_t, glob_proc_id: c_int) -> c_int = || {
        let world = known(domain)?;
        Ok(world.node_of(rank(world, glob_proc_id)?)? as c_int)
    };

    /// Rank `loc_proc_id` of domain `id`.
    answer fn armci_domain_glob_proc_id(domain: armci_domain_t, id: c_int, loc_proc_id: c_int) -> c_int = || {
        let world = known(domain)?;
        let all = ranks(world, usize::try_from(id).unwrap_or(usize::MAX))?;
        let found = usize::try_from(loc_proc_id).ok().and_then(|at| all.get(at));
        found.map(|rank| *rank as c_int).ok_or_else(|| {
            Error::Argument(format!("rank {loc_proc_id} of domain {id} does not exist: it has {}", all.len()))
        })
    };

    /// This rank's domain.
    answer fn armci_domain_my_id(domain: armci_domain_t) -> c_int = || {
        let world = known(domain)?;
        Ok(world.node_of(world.rank())? as c_int)
    };

    /// How many domains there are.
    answer fn armci_domain_count(domain: armci_domain_t) -> c_int = || Ok(known(domain)?.nodes() as c_int);

    /// Whether a rank is of this rank's domain.
    answer fn armci_domain_same_id(domain: armci_domain_t, proc: c_int) -> c_int =
        || known(domain).and_then(|world| same_node(world, proc));

    /// Whether a rank is on this node, so that its memory may be read and written in place.
    answer fn ARMCI_Same_node(proc: c_int) -> c_int = || same_node(world()?, proc);

    /// Whether ranks of a node share memory: they do.
    answer fn ARMCI_Uses_shm() -> c_int = || Ok(1);

    /// What other ARMCIs limit so is limited by ARMCI_MEMORY and ARMCI_SLOT here, and by what the machine has. May be
    /// called before [`ARMCI_Init`](crate::life::ARMCI_Init).
    answer fn ARMCI_Set_shm_limit(_shmemlimit: c_ulong) = || Ok(());
}

fn known(domain: armci_domain_t) -> Result<&'static World> {
    match domain {
        ARMCI_DOMAIN_SMP => world(),
        other => unknown(other, "kind of domain", "ARMCI_DOMAIN_SMP (0)"),
    }
}

fn same_node(world: &World, proc: c_int) -> Result<c_int> {
    Ok((world.node_of(rank(world, proc)?)? == world.node_of(world.rank())?).into())
}

/// The ranks of a domain.
fn ranks(world: &World, id: usize) -> Result<Vec<usize>> {
    let nodes = world.nodes();
    if id >= nodes {
        return Err(Error::Argument(format!("domain {id} does not exist: there are {nodes}")));
    }
    let mut of_it = Vec::new();
    for rank in 0..world.size() {
        if world.node_of(rank)? == id {
            of_it.push(rank);
        }
    }
    Ok(of_it)
}
