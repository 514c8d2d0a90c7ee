//! The bill of materials: every crate that is built into the program, as CycloneDX JSON, from `cargo metadata` and the
//! checksums in `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Release, files, output};

const SCHEMA: &str = "http://cyclonedx.org/schema/bom-1.5.schema.json";

pub(super) fn write(release: &Release) -> Result<(), String> {
    let words =
        ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", &release.target];
    let metadata = output(&release.root, &words)?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = std::fs::read_to_string(release.root.join("Cargo.lock"))
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let bom = of(&metadata, &checksums(&lock), &release.version)?;
    let text = serde_json::to_string_pretty(&bom).map_err(|error| error.to_string())? + "\n";
    files::write(&release.out.join(format!("{}.cdx.json", release.name())), &text)
}

/// The checksum of each crate by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    let known = blocks.filter_map(|block| {
        Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?))
    });
    known.collect()
}

fn of(metadata: &Value, sums: &BTreeMap<(String, String), String>, version: &str) -> Result<Value, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    let root = packages.values().find(|package| package["name"] == "archeflow");
    let root = text(&root.ok_or("the workspace has no package `archeflow`")?["id"]);
    // What is built in, or needed to build: not what only tests use.
    let needs = |id: &str| -> BTreeSet<String> {
        let deps = nodes.get(id).map(|node| list(&node["deps"])).unwrap_or_default();
        let built =
            deps.iter().filter(|dep| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev"));
        built.map(|dep| text(&dep["pkg"])).collect()
    };
    let (mut reached, mut open) = (BTreeSet::from([root.clone()]), vec![root.clone()]);
    while let Some(id) = open.pop() {
        open.extend(needs(&id).into_iter().filter(|next| reached.insert(next.clone())));
    }
    let reference = |id: &String| packages.get(id).map(purl).unwrap_or_default();
    let mut components: Vec<Value> = reached
        .iter()
        .filter(|id| **id != root)
        .filter_map(|id| packages.get(id).map(|package| component(package, sums)))
        .collect();
    components.sort_by_key(|one| text(&one["bom-ref"]));
    let mut dependencies: Vec<Value> = reached
        .iter()
        .map(|id| {
            let on: BTreeSet<String> = needs(id).iter().map(reference).collect();
            json!({ "ref": reference(id), "dependsOn": on })
        })
        .collect();
    dependencies.sort_by_key(|one| text(&one["ref"]));
    let program = packages.get(&root).map(|package| component(package, sums)).unwrap_or_default();
    let mut program = program;
    program["type"] = "application".into();
    Ok(json!({
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": program,
            "tools": { "components": [{ "type": "application", "name": "xtask dist", "version": version }] },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut component = json!({
        "type": "library", "bom-ref": purl(package), "name": name, "version": version, "purl": purl(package),
    });
    if let Some(license) = package["license"].as_str() {
        // Cargo once allowed a slash for OR.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if package["source"].is_null() && !is_ours(&name) {
        component["pedigree"] =
            json!({ "notes": "Part of this repository, in place of the published crate" });
    }
    if let Some(sum) = sums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

fn is_ours(name: &str) -> bool {
    name.starts_with("archeflow")
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What CycloneDX 1.5 requires of the fields that are used here; `Err` names the first that is missing.
pub(super) fn check(bom: &Value) -> Result<(), String> {
    let has = |is: bool, what: &str| if is { Ok(()) } else { Err(format!("the bill of materials: {what}")) };
    has(bom["bomFormat"] == "CycloneDX" && bom["specVersion"] == "1.5", "bomFormat or specVersion")?;
    has(bom["version"].as_u64().is_some_and(|version| version > 0), "version")?;
    has(bom["metadata"]["component"]["name"] == "archeflow", "metadata.component")?;
    let components = bom["components"].as_array().cloned().unwrap_or_default();
    let mut known = BTreeSet::from([text(&bom["metadata"]["component"]["bom-ref"])]);
    for one in &components {
        let name = text(&one["name"]);
        has(!name.is_empty() && one["type"] == "library", "a component without name or type")?;
        has(text(&one["purl"]).starts_with("pkg:cargo/"), &format!("the purl of {name}"))?;
        has(known.insert(text(&one["bom-ref"])), &format!("{name} is listed twice"))?;
        // What is in this repository has no checksum in the lock file.
        let is_here = is_ours(&name) || one["pedigree"]["notes"].is_string();
        let hash = text(&one["hashes"][0]["content"]);
        has(
            is_here || hash.len() == 64 && hash.bytes().all(|c| c.is_ascii_hexdigit()),
            &format!("the hash of {name}"),
        )?;
        has(one["licenses"][0]["expression"].is_string(), &format!("the licence of {name}"))?;
    }
    for one in bom["dependencies"].as_array().cloned().unwrap_or_default() {
        let on = one["dependsOn"].as_array().cloned().unwrap_or_default();
        for name in on.iter().chain([&one["ref"]]) {
            has(known.contains(&text(name)), &format!("{name} is in no list of components"))?;
        }
    }
    has(components.len() > 20, "almost nothing is listed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_19_the_bill_of_materials_lists_what_is_built_in() {
        let from = |source: Value, id: &str| json!({ "id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source });
        let package = |id: &str| from("registry+example".into(), id);
        let dep = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [from(Value::Null, "archeflow"), package("a"), package("b"), from(Value::Null, "p"), package("t")],
            "resolve": { "nodes": [
                { "id": "archeflow", "deps": [dep("a", Value::Null), dep("p", Value::Null), dep("t", "dev".into())] },
                { "id": "a", "deps": [dep("b", "build".into())] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n";
        let bom = of(&metadata, &checksums(lock), "0.1.0").unwrap_or_default();
        let names: Vec<String> =
            bom["components"].as_array().into_iter().flatten().map(|one| text(&one["name"])).collect();
        assert_eq!(names, ["a", "b", "p"]);
        let is_here: Vec<bool> =
            (0..3).map(|n| bom["components"][n]["pedigree"]["notes"].is_string()).collect();
        assert_eq!(is_here, [false, false, true]);
        assert_eq!(bom["components"][0]["hashes"][0]["content"], "00ff");
        assert_eq!(bom["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            bom["dependencies"][0],
            json!({ "ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@1.0.0"] })
        );
        assert!(check(&bom).is_err_and(|why| why.contains("hash of a")));
    }
}
