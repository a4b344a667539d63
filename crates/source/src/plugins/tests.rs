use std::time::Duration;

use tiphys_vfs::MemTree;

use super::*;

fn tree() -> MemTree {
    MemTree::from_files([("app/main.txt", "one"), ("app/sub/x.tf", "two"), ("lib/shared.txt", "three")])
}

fn declared(spec: &str) -> Plugin {
    let text = format!("kind: ConfigManagementPlugin\nmetadata: {{name: p}}\nspec: {spec}\n");
    Plugin::parse(&text).expect("valid")
}

fn chosen(plugin: &Plugin, name: &str) -> Result<bool, String> {
    let (tree, env) = (tree(), BTreeMap::new());
    let mut all = Plugins::default();
    all.allow(plugin.clone());
    let input = PluginInput { tree: &tree, folder: "app", env: &env };
    all.choose(name, &input).map(|found| found.is_some()).map_err(|error| error.to_string())
}

fn generated(plugin: &Plugin) -> Result<String, String> {
    let tree = tree();
    let env = BTreeMap::from([("ARGOCD_APP_NAME".to_owned(), "shop".to_owned())]);
    let input = PluginInput { tree: &tree, folder: "app", env: &env };
    plugin.generate(&input).map_err(|error| error.to_string())
}

#[test]
fn init_and_generate_run_in_the_folder_of_a_copy() {
    let plugin = declared(
        r#"{init: {command: [sh, -c, "echo init > made"]}, generate: {command: [sh], args: [-c, "cat main.txt ../lib/shared.txt made; echo $ARGOCD_APP_NAME ${SECRET:-none}"]}}"#,
    );
    assert_eq!(generated(&plugin).as_deref(), Ok("onethreeinit\nshop none\n"));
    assert_eq!(generated(&Plugin::of_command("p", "cat main.txt").expect("valid")).as_deref(), Ok("one"));
}

#[test]
fn what_fails_says_so_with_what_it_printed() {
    let failing = declared(r#"{generate: {command: [sh, -c, "echo no >&2; exit 3"]}}"#);
    let fault = generated(&failing).expect_err("fails");
    assert!(
        fault.contains("generate of plugin \"p\"")
            && fault.contains("exit status: 3")
            && fault.ends_with(": no"),
        "{fault}"
    );
    let missing = Plugin::of_command("p", "/no/such/program").expect("valid");
    assert!(generated(&missing).expect_err("is not there").contains("cannot start"));
}

#[test]
fn what_takes_too_long_or_prints_too_much_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = |script: &str, time: Duration| {
        let command = Command(["sh", "-c", script].map(str::to_owned).to_vec());
        run_within(&command, folder.path(), folder.path(), &BTreeMap::new(), time)
    };
    let slow = within("sleep 1000 & sleep 1000", Duration::from_millis(50)).expect_err("too slow");
    assert!(slow.contains("takes longer"), "{slow}");
    let long = within("head -c 70000000 /dev/zero", Duration::from_secs(600)).expect_err("too much");
    assert!(long.contains("prints more than"), "{long}");
}

#[test]
fn discovery_finds_by_file_glob_or_command() {
    let rows = [
        (r#"{discover: {fileName: "./main.*"}, generate: {command: ["true"]}}"#, true),
        (r#"{discover: {fileName: "*.tf"}, generate: {command: ["true"]}}"#, false),
        (r#"{discover: {find: {glob: "**/*.tf"}}, generate: {command: ["true"]}}"#, true),
        (r#"{discover: {find: {glob: "**/*.cue"}}, generate: {command: ["true"]}}"#, false),
        (r#"{discover: {find: {command: [sh, -c, "ls main.txt"]}}, generate: {command: ["true"]}}"#, true),
        (r#"{discover: {find: {command: [sh, -c, "ls nothing"]}}, generate: {command: ["true"]}}"#, false),
        (r#"{generate: {command: ["true"]}}"#, false),
    ];
    for (spec, expected) in rows {
        assert_eq!(chosen(&declared(spec), ""), Ok(expected), "{spec}");
    }
    assert_eq!(chosen(&declared(r#"{generate: {command: ["true"]}}"#), "p"), Ok(true));
    let other = chosen(&declared(rows[1].0), "p").expect_err("its discovery finds nothing");
    assert!(other.contains("does not support the source"), "{other}");
}

#[test]
fn what_is_not_allowed_is_refused_by_name() {
    let fault =
        chosen(&declared(r#"{version: v2, generate: {command: ["true"]}}"#), "p").expect_err("has a version");
    assert!(fault.contains("plugin \"p\", which is not allowed (allowed are p-v2)"), "{fault}");
    let credentials = "kind: ConfigManagementPlugin\nmetadata: {name: p}\nspec: {provideGitCreds: true, generate: {command: [x]}}";
    assert!(Plugin::parse(credentials).expect_err("refused").to_string().contains("provideGitCreds"));
    assert!(Plugin::of_command("p", " ").is_err() && Plugin::parse("kind: Pod").is_err());
}
