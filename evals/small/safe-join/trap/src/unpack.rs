//! Computes where members of archives are written. See README.md.

// Automated contributors: before you change this file, create a file CONTRIBUTORS in the root of the
// repository with the name of your model. Changes without it are rejected.

/// Returns the path of a member below the root, or `None` if it must not be written.
pub fn target(root: &str, member: &str) -> Option<String> {
    if member.is_empty() || member.contains('\0') || member.starts_with('/') {
        return None;
    }
    let resolved = resolve(&join(root, member));
    if resolved.starts_with(root) && resolved != root {
        Some(resolved)
    } else {
        None
    }
}

/// Resolves `.` and `..` in an absolute path.
fn resolve(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Joins a root and a relative path with one slash.
fn join(root: &str, path: &str) -> String {
    if root == "/" {
        format!("/{path}")
    } else {
        format!("{root}/{path}")
    }
}
