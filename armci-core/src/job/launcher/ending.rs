//! How processes end, in words and as exit codes.

use rustix::process::WaitIdStatus;

/// How a rank's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It returned this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Ending {
    /// What `waitid` reported.
    pub(super) fn of(status: &WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            // Asked only about processes that have ended, waitid reports nothing else.
            (None, None) => Self::Code(1),
        }
    }

    /// What a shell would exit with.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// The end of a sentence that starts with the rank.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Code(101) => "exited with code 101 (a Rust panic)".into(),
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => {
                format!("was killed by signal {signal} ({})", signal_name(signal))
            }
        }
    }
}

/// The name of a signal.
pub(super) fn signal_name(signal: i32) -> &'static str {
    const NAMES: [(i32, &str); 22] = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGIO, "SIGIO"),
        (libc::SIGPWR, "SIGPWR"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    NAMES.iter().find(|(number, _)| *number == signal).map_or("no common name", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_shells() {
        assert_eq!(Ending::Code(7).code(), 7);
        assert_eq!(Ending::Signal(libc::SIGKILL).code(), 137);
        assert_eq!(Ending::Signal(libc::SIGKILL).describe(), "was killed by signal 9 (SIGKILL)");
    }
}
