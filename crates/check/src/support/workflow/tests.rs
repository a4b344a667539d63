use tiphys_yaml::{Profile, parse_documents};

use super::{Effect, faults};

/// The line, effect and message of each fault of a workflow.
fn faults_in(text: &str) -> Vec<(u32, Effect, String)> {
    let documents = parse_documents(text, Profile::Go3).expect("is YAML");
    let root = &documents[0].root;
    faults(root).into_iter().map(|fault| (fault.node.span.start.line, fault.effect, fault.message)).collect()
}

/// The messages of a job with these lines, indented by four.
fn of_job(lines: &str) -> Vec<String> {
    let text = format!("on: push\njobs:\n  build:\n    runs-on: x\n{lines}");
    faults_in(&text).into_iter().map(|(_, _, message)| message).collect()
}

#[test]
fn contexts_are_refused_where_they_are_not_there() {
    assert_eq!(
        of_job("    if: secrets.TOKEN != ''\n"),
        ["Unrecognized named-value: 'secrets'. Located at position 1 within expression: secrets.TOKEN != ''"]
    );
    assert_eq!(
        of_job("    env: {A: '${{ env.B }}', C: '${{ secrets.C }}'}\n"),
        ["Unrecognized named-value: 'env'. Located at position 1 within expression: env.B"]
    );
    assert_eq!(
        of_job("    steps:\n    - if: env.A == \"b\"\n      run: x\n"),
        ["Unexpected symbol: '\"b\"'. Located at position 10 within expression: env.A == \"b\""]
    );
    assert_eq!(of_job("    steps:\n    - run: echo ${{ hashFiles('a') }} ${{ env.A }}\n"), [""; 0]);
    assert_eq!(
        of_job("    timeout-minutes: ${{ always() }}\n"),
        ["Unrecognized function: 'always'. Located at position 1 within expression: always()"]
    );
}

#[test]
fn a_condition_with_text_beside_its_expression_holds() {
    let text = "on: push\njobs:\n  a:\n    runs-on: x\n    if: ${{ false }} && vars.A\n    steps: []\n";
    assert_eq!(
        faults_in(text),
        [(5, Effect::AlwaysTrue, "the condition `${{ false }} && vars.A` always holds".to_owned())]
    );
    assert_eq!(of_job("    if: |\n      ${{ vars.A == 'b' }}\n"), [""; 0]);
    assert_eq!(of_job("    if: \"!contains(github.ref, 'x') || always()\"\n"), [""; 0]);
}

#[test]
fn forms_that_github_refuses() {
    for (lines, expected) in [
        ("    env: a\n", "Unexpected value 'a'"),
        ("    env: [a]\n", "A sequence was not expected"),
        ("    env: {A: {b: c}}\n", "A mapping was not expected"),
        ("    strategy: {fail_fast: true}\n", "Unexpected value 'fail_fast'"),
        ("    strategy: {max-parallel: two}\n", "Unexpected value 'two'"),
        ("    permissions: {contents: wrote}\n", "Unexpected value 'wrote'"),
        ("    permissions: write\n", "Unexpected value 'write'"),
        ("    container: {options: -v}\n", "Required property is missing: image"),
        ("    steps:\n    - {id: v1.2, run: x}\n", "The identifier 'v1.2' is invalid"),
        ("    steps:\n    - {run: '${{ a'}\n", "The expression is not closed"),
    ] {
        let found = of_job(lines);
        assert!(matches!(&found[..], [one] if one.starts_with(expected)), "{lines}: {found:?}");
    }
    for lines in [
        "    env: ${{ fromJSON(needs.a.outputs.env) }}\n",
        "    strategy: {matrix: '${{ fromJSON(needs.a.outputs.m) }}'}\n",
        "    strategy: {matrix: {include: [{a: {b: c}}], os: [x, {y: z}]}}\n",
        "    runs-on: {group: a, labels: [b]}\n    secrets: inherit\n",
        "    permissions: {}\n    services: {db: {image: x, ports: [1]}}\n",
        "    permissions: {something-new: read}\n",
    ] {
        assert_eq!(of_job(lines), [""; 0], "{lines}");
    }
}

#[test]
fn events_and_their_filters() {
    let jobs = "jobs: {a: {runs-on: x, steps: []}}\n";
    for (on, expected) in [
        (
            "on: {push: {branches: [a], branches-ignore: [b]}}\n",
            "you may only define one of `branches` and `branches-ignore` for a single event",
        ),
        ("on: {schedule: [{cron: '0 0 * *'}]}\n", "'0 0 * *' is not a valid cron expression"),
        ("on: {workflow_call: {inputs: {a: {required: true}}}}\n", "Required property is missing: type"),
        ("on: {workflow_dispatch: {inputs: {a: {type: text}}}}\n", "Unexpected value 'text'"),
    ] {
        let found = faults_in(&format!("{on}{jobs}"));
        assert!(matches!(&found[..], [(1, Effect::Refused, one)] if one == expected), "{on}: {found:?}");
    }
    for (on, expected) in [
        ("on: pull_requests\n", "there is no event pull_requests"),
        ("on: {push: {branch: main}}\n", "the event push has no filter branch"),
        ("on: {pull_request: {tags: [v1]}}\n", "the event pull_request has no filter tags"),
        ("on: {pull_request: {types: [open]}}\n", "the event pull_request has no type open"),
    ] {
        assert_eq!(faults_in(&format!("{on}{jobs}")), [(1, Effect::Ignored, expected.to_owned())]);
    }
    for on in [
        "on: [push, pull_request]\n",
        "on: {push: , schedule: [{cron: 0 0 * * 1}], something_new: {types: [x]}}\n",
    ] {
        assert_eq!(faults_in(&format!("{on}{jobs}")), []);
    }
}

#[test]
fn what_nobody_declares_is_empty() {
    let text = "on: {workflow_call: {inputs: {Tag: {type: string}}}}
jobs:
  a: {runs-on: x, outputs: {image: y}, steps: []}
  b: {uses: ./.github/workflows/b.yaml}
  c:
    needs: [a, b]
    runs-on: ${{ inputs.tag }}
    name: ${{ inputs.tags }} ${{ needs.a.outputs.image }} ${{ needs.a.outputs.images }} ${{ needs.b.outputs.x }}
    if: needs.a.result == 'success' && inputs.*
    steps: []
";
    assert_eq!(
        faults_in(text),
        [
            (8, Effect::AlwaysEmpty, "the workflow has no input tags".to_owned()),
            (8, Effect::AlwaysEmpty, "job a has no output images".to_owned()),
        ]
    );
}

#[test]
fn what_the_author_counts_on_being_empty_is_no_fault() {
    let text = "on: push
jobs:
  a:
    runs-on: x
    steps:
      - run: |
          if [ -z \"${{ inputs.tag }}\" ]; then exit 0; fi
          echo \"${{ inputs.tag }}\"
      - run: echo ${{ inputs.tag || 'latest' }}
      - run: echo ${{ inputs.tag }}
";
    let told = faults_in(text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, 10);
}

#[test]
fn a_matrix_has_what_it_says() {
    let text = "on: push
jobs:
  a:
    strategy: {matrix: {os: [x], include: [{Name: y}]}}
    runs-on: ${{ matrix.os }}
    continue-on-error: ${{ matrix.flaky == true }}
    steps: [{run: 'echo ${{ matrix.name }} ${{ matrix.nme }} ${{ matrix.more-arguments }} ${{ matrix.* }}'}]
  b:
    strategy: {matrix: '${{ fromJSON(vars.LIST) }}'}
    runs-on: ${{ matrix.any }}
    steps: []
  c:
    strategy: {matrix: {os: [x], include: '${{ fromJSON(vars.MORE) }}'}}
    runs-on: ${{ matrix.any }}
    steps: []
  d:
    runs-on: ${{ matrix.os }}
    steps: []
";
    assert_eq!(
        faults_in(text),
        [
            (7, Effect::AlwaysEmpty, "the matrix of the job has no nme".to_owned()),
            (17, Effect::AlwaysEmpty, "the matrix of the job has no os".to_owned()),
        ]
    );
}

#[test]
fn runners_that_are_no_more() {
    let text = "on: push
jobs:
  a: {runs-on: ubuntu-20.04, steps: [{uses: actions/checkout}]}
  b:
    runs-on: ${{ matrix.os }}
    strategy: {matrix: {os: [ubuntu-24.04, macos-12]}}
    steps: [{uses: docker://alpine}]
";
    assert_eq!(
        faults_in(text),
        [
            (3, Effect::NeverRuns, "GitHub has no runner ubuntu-20.04 any more".to_owned()),
            (
                3,
                Effect::Refused,
                "Expected format {org}/{repo}[/path]@ref. Actual 'actions/checkout'".to_owned()
            ),
            (6, Effect::NeverRuns, "GitHub has no runner macos-12 any more".to_owned()),
        ]
    );
}

#[test]
fn jobs_that_wait_for_each_other() {
    let text = "on: push\njobs:\n  a: {needs: b, steps: []}\n  b: {needs: [c, d], steps: []}\n  c: {needs: [a], steps: []}\n  d: {steps: []}\n";
    let message = "Job 'c' depends on job 'a' which creates a cycle in the dependency graph.";
    assert_eq!(faults_in(text), [(5, Effect::Refused, message.to_owned())]);
    // As many as fit into a file, without recursion.
    let mut long = String::from("on: push\njobs:\n");
    for at in 0..20_000 {
        long.push_str(&format!("  j{at}: {{needs: j{}}}\n", at + 1));
    }
    assert_eq!(faults_in(&long), []);
}
