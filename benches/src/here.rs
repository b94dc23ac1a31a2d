//! The machine this runs on, in words and numbers.

use armci_core::topology::Topology;

use crate::line::{self, Cores};
use crate::machine::Load;
use crate::record::Machine;

/// Describes it, with a first look at what else goes on.
pub fn describe() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let system = rustix::system::uname();
    let mut machine = Machine {
        processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown processor".into()),
        cores: Topology::load().map_or(0, |topology| topology.cores().len()),
        memory: field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse::<u64>().ok())
            .map_or(0, |kibibytes| kibibytes * 1024),
        system: [system.sysname(), system.release()].map(|word| plain(&word.to_string_lossy()).to_owned()).join(" "),
        ..Machine::default()
    };
    look(&mut machine);
    machine
}

/// Looks again how near the cores are, and how busy others keep them.
pub fn look(machine: &mut Machine) {
    machine.others = machine.others.max(Load::of_others());
    machine.line.extend(Cores::find().ok().and_then(line::transfer));
}

/// A version without what somebody's build added to it.
fn plain(version: &str) -> &str {
    version.split('-').next().unwrap_or(version)
}

/// A command as one would write it: without where its program lies here.
pub fn command(mut words: impl Iterator<Item = String>) -> String {
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

/// The first value of this name in a file of names and values.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_does_not_say_where_its_program_lies() {
        let words = ["/some/where/armci-bench", "limits", "--json", "a/b.json"].map(String::from);
        assert_eq!(command(words.into_iter()), "armci-bench limits --json a/b.json");
        assert_eq!(plain("6.1.0-30-amd64"), "6.1.0");
    }

    #[test]
    fn a_field_is_found() {
        assert_eq!(field("a : 1\nmodel name\t: AMD EPYC\n", "model name"), Some("AMD EPYC".into()));
        assert_eq!(field("a : 1\n", "b"), None);
    }
}
