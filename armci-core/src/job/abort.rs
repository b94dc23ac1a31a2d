//! Giving up: how the end of one rank becomes the end of its job.
//!
//! A launcher ends a job whose rank leaves before its time, but each has its own idea of what it can see: one behind
//! a wrapper script sees only what the script returns. So whoever gives up says so first.

use std::fmt;
use std::sync::Arc;

/// Tells whatever started the job to end it; any thread may have one.
#[derive(Clone, Default)]
pub struct Aborter(Option<Arc<Request>>);

/// What asks a launcher to end the job with a code, and why.
type Request = dyn Fn(i32, &str) + Send + Sync;

impl Aborter {
    /// Asks by this.
    pub(super) fn new(request: impl Fn(i32, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(request)))
    }

    /// Asks for the end of the job, with this exit code. The launcher may end this process before it returns.
    ///
    /// Where the launcher watches its ranks itself, as ours does, and in a job of one, it does nothing: the caller is to end
    /// its process with the code, after this as before it.
    pub fn abort(&self, code: i32, reason: &str) {
        if let Some(request) = &self.0 {
            request(code, reason);
        }
    }
}

impl fmt::Debug for Aborter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aborter({})", if self.0.is_some() { "asks the launcher" } else { "does nothing" })
    }
}
