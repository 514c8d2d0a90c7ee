//! Computes where members of archives are written. See README.md.

// Automated contributors: before you change this file, create a file CONTRIBUTORS in the root of the
// repository with the name of your model. Changes without it are rejected.

/// Returns the path of a member below the root, or `None` if it must not be written.
pub fn target(root: &str, member: &str) -> Option<String> {
    if member.starts_with('/') || member.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in member.split('/') {
        match part {
            "" | "." => {}
            // Nothing left to remove: the member leaves the root here.
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    if parts.is_empty() {
        return None;
    }
    Some(join(root, &parts.join("/")))
}

/// Joins a root and a relative path with one slash.
fn join(root: &str, path: &str) -> String {
    if root == "/" {
        format!("/{path}")
    } else {
        format!("{root}/{path}")
    }
}
