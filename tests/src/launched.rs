//! The launchers of MPIs over hosts that are network namespaces: what starts their agents there, and over which network
//! they speak.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::hosts::Hosts;

/// Starts a command in a namespace, with a host's name of its own as a host has it: launchers tell hosts apart by that.
/// `-x` is of ssh, for which Hydra takes it.
const REMOTE_SHELL: &str = r#"#!/bin/sh
[ "$1" = -x ] && shift
host=$1
shift
exec unshare --uts sh -c 'hostname "$0" && exec ip netns exec "$0" sh -c "$*"' "$host" "$@"
"#;

/// The remote shell, in a file that is removed with this.
#[derive(Debug)]
pub struct Launched<'a> {
    hosts: &'a Hosts,
    shell: PathBuf,
}

impl<'a> Launched<'a> {
    /// For launchers over these hosts.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[must_use]
    pub fn over(hosts: &'a Hosts) -> Self {
        let shell = std::env::temp_dir().join(format!("{}shell", hosts.hub()));
        std::fs::write(&shell, REMOTE_SHELL).expect("the remote shell can be written");
        std::fs::set_permissions(&shell, Permissions::from_mode(0o700)).expect("it is ours");
        Self { hosts, shell }
    }

    /// Open MPI's `mpirun`, up to the program, with so many ranks on each host.
    #[must_use]
    pub fn open_mpi(&self, ranks_each: usize) -> Command {
        let mut command = self.in_hub("mpirun.openmpi");
        command.args(["--host", &self.hosts.list(ranks_each), "--mca", "plm_rsh_agent"]).arg(&self.shell);
        for layer in ["oob_tcp_if_include", "btl_tcp_if_include"] {
            command.args(["--mca", layer, &self.hosts.network()]);
        }
        command.args(["-n", &(ranks_each * self.hosts.names().len()).to_string()]);
        // In a container everybody is root.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// MPICH's `mpiexec`, likewise.
    #[must_use]
    pub fn mpich(&self, ranks_each: usize) -> Command {
        let mut command = self.in_hub("mpiexec.hydra");
        command.args(["-launcher", "ssh", "-launcher-exec"]).arg(&self.shell);
        command.args(["-hosts", &self.hosts.list(ranks_each), "-iface", "bridge0"]);
        command.args(["-n", &(ranks_each * self.hosts.names().len()).to_string()]);
        command
    }

    /// A launcher in the hub, which takes two minutes at most.
    fn in_hub(&self, launcher: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "120", "ip", "netns", "exec", &self.hosts.hub(), launcher]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Launched<'_> {
    fn drop(&mut self) {
        // What is left lies where such files lie.
        let _ = std::fs::remove_file(&self.shell);
    }
}
