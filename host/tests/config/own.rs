//! Settings that no repository may make, approved or not.

use super::*;

/// Lessons cross from one repository to another only when the user says so.
#[test]
fn d_08_what_is_the_users_own_no_repository_sets() {
    for key in rows().filter(|key| key.class == SettingClass::Own) {
        for value in right(key.kind) {
            let (text, line) = file_with(key.path, value);
            let refused = Test::new().repo(&text).approved().faults();
            let plain = value.replace('\'', "");
            let plain = plain.trim_start_matches('|').trim();
            let wanted = format!("{REPOSITORY_CONFIG}:{line}: `{}` is `{plain}`; allowed: nothing", key.path);
            assert!(refused.starts_with(&wanted), "{refused}");
            // These are looked at more closely than other lists.
            let own = match key.path {
                "sandbox.hosts" => "[example.org, '*.example.org', 127.0.0.1:8080]",
                "sandbox.read" | "sandbox.write" => "[/srv/data, ~/.config/my-agent]",
                _ => value,
            };
            assert_eq!(Test::new().user(&file_with(key.path, own).0).settings().withheld(), []);
        }
    }
    let wrong = ["data", "/", "~", "~/../x", "/srv/../etc"];
    for (key, value) in ["read", "write"].iter().flat_map(|key| wrong.iter().map(move |value| (key, value))) {
        let faults = Test::new().user(&format!("sandbox: {{{key}: ['{value}']}}\n")).faults();
        assert!(
            faults.contains(&format!("`sandbox.{key}` is `{value}`; allowed: absolute paths or")),
            "{faults}"
        );
    }
    let chosen = Test::new().user("sandbox: {read: [~/.config/x, /srv]}\n").settings();
    let read = chosen.sandbox_choice(Some(Path::new("/users/me"))).read;
    assert_eq!(read, ["/users/me/.config/x", "/srv"].map(PathBuf::from));
    assert!(Test::new().user("memory: {share: true}\n").settings().policy().memory.share);
}

#[test]
fn notify_secrets_in_addresses_are_not_shown() {
    let text = "notify: {webhook: 'https://hooks.example.org/T0/B1/hidden?key=hidden', webhook_secret: HOOK_KEY, ntfy: 'https://ntfy.example.org/hidden', link: 'https://ui.example.org'}\n";
    let settings = Test::new().user(text).settings();
    for (key, value) in [
        ("notify.webhook", "https://hooks.example.org/…"),
        ("notify.webhook_secret", "HOOK_KEY"),
        ("notify.ntfy", "https://ntfy.example.org/…"),
        ("notify.link", "https://ui.example.org"),
        ("notify.on", "[decision, break, budget, sprint_done]"),
    ] {
        assert_eq!(shown(&settings, key).0, value, "{key}");
    }
    assert_eq!(
        settings.notify().webhook.as_deref(),
        Some("https://hooks.example.org/T0/B1/hidden?key=hidden")
    );
    for wrong in ["http://hooks.example.org/hidden", "https://me:hidden@hooks.example.org/hidden"] {
        let faults = Test::new().user(&format!("notify: {{webhook: '{wrong}'}}\n")).faults();
        assert!(faults.contains("hooks.example.org/…`; allowed: https://"), "{faults}");
        assert!(!faults.contains("hidden"), "{faults}");
    }
    let pasted = Test::new().user("notify: {webhook_secret: 'hidden-itself!'}\n").faults();
    assert!(pasted.contains("notify.webhook_secret") && !pasted.contains("hidden"), "{pasted}");
}

#[test]
fn notify_is_the_users_own() {
    for text in [
        "notify: {webhook: https://example.org/x}",
        "notify: {command: make tea}",
        "notify: {on: []}",
        "notify: {desktop: false}",
    ] {
        let refused = Test::new().repo(&format!("{text}\n")).approved().faults();
        assert!(refused.contains("a repository can't set it. Set it in your own configuration"), "{refused}");
    }
    let unknown = Test::new().user("notify: {slack: x}\n").faults();
    assert!(unknown.contains("unknown key `notify.slack`"), "{unknown}");
}
