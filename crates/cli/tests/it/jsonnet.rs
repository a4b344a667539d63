//! Jsonnet, which the real binary evaluates in processes of its own.

use crate::common::{Repo, Run, application};

/// What `render app` says of a folder with a Jsonnet file and these others.
fn rendered(main: &str, others: &[(&str, &str)]) -> Run {
    let repo = Repo::shop(&[("manifests/main.jsonnet", main)]);
    for (path, text) in others {
        repo.write(path, text);
    }
    repo.git_init();
    repo.run(&["render", "app", "repo/root.yaml"])
}

#[test]
fn imports_come_from_the_repository_and_nowhere_else() {
    let main = "local name = import '../lib/name.libsonnet';\n\
        {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: name}, data: {text: importstr 'text.txt'}}";
    let files =
        [("lib/name.libsonnet", "'shop-' + (import 'more.libsonnet')"), ("lib/more.libsonnet", "'config'")];
    let text = ("manifests/text.txt", "tall ünd\n");
    rendered(main, &[files[0], files[1], text]).expect(0, &["name: shop-config", "tall ünd"]);
    rendered(main, &[files[0], text]).expect(1, &["lib/name.libsonnet:1:12", "more.libsonnet"]);
    rendered("importstr '/etc/hostname'", &[]).expect(1, &["nothing outside the repository is read"]);
    rendered("error 'no ' + 'way'", &[]).expect(1, &["manifests/main.jsonnet:1:1: no way"]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    rendered("import 'big.libsonnet'", &[("manifests/big.libsonnet", pointer)])
        .expect(1, &["big.libsonnet is kept by Git LFS"]);
}

#[cfg(target_os = "linux")]
#[test]
fn what_takes_too_much_memory_ends_alone() {
    let hungry = [
        "std.length(std.range(1, 1000000000))",
        "local double(s, n) = if n == 0 then s else double(s + s, n - 1); std.length(double('a', 40))",
    ];
    for main in hungry {
        rendered(main, &[])
            .expect(1, &["manifests/main.jsonnet: evaluating it takes more than ", " MiB of memory"]);
    }
}

#[test]
fn the_evaluator_ends_with_whom_it_works_for() {
    let repo = Repo::with(&[("root.yaml", &application("shop", "manifests"))]);
    // Its standard input is at its end at once.
    let run = repo.run(&["jsonnet-evaluator"]);
    run.expect(1, &["Error: "]);
}
