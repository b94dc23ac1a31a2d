//! Which process was started by which.

/// Whether a process is another, or descends from it.
pub(super) fn descends(mut process: i32, ancestor: i32) -> bool {
    while process > 1 {
        if process == ancestor {
            return true;
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else { return false };
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        process = parent.and_then(|text| text.trim().parse().ok()).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_descends_from_itself_and_its_parents() {
        let (child, parent) = (std::process::id() as i32, std::os::unix::process::parent_id() as i32);
        assert!(descends(child, child) && descends(child, parent));
        assert!(!descends(parent, child) && !descends(0, 0) && !descends(-1, 5));
    }
}
