//! What a workflow may hold (GitHub docs, "Workflow syntax for GitHub Actions"), and which contexts and
//! functions the expressions of each part may ask for (GitHub docs, "Contexts", "Context availability").

/// What stands under a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Anything: what is not checked by GitHub's, or looked at elsewhere.
    Any,
    /// A text, a number or a boolean.
    Scalar,
    /// `true`, `false`, or an expression.
    Bool,
    /// A number, or an expression.
    Number,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A mapping with these keys.
    Mapping(&'static [Key]),
    /// A mapping with any keys, of which all values are alike.
    Named(&'static Shape),
    /// As [`Shape::Named`], with keys that are identifiers.
    Identified(&'static Shape),
    List(&'static Shape),
    /// One, or a list of them.
    OneOrMany(&'static Shape),
    /// A scalar, or what this says.
    ScalarOr(&'static Shape),
    /// One of some words, or what this says.
    WordOr(&'static [&'static str], &'static Shape),
    /// A list, or what this says.
    ListOr(&'static Shape),
}

/// A key of a mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// What expressions below it may ask for; `None` as above it.
    pub(super) scope: Option<&'static ExpressionScope>,
    pub(super) is_required: bool,
}

/// What expressions may ask for.
#[derive(Debug)]
pub(super) struct ExpressionScope {
    pub(super) contexts: &'static [&'static str],
    /// Functions that not every expression may call.
    pub(super) functions: &'static [&'static str],
}

/// All contexts.
pub(super) const CONTEXTS: [&str; 12] = [
    "github", "env", "vars", "job", "jobs", "steps", "runner", "secrets", "strategy", "matrix", "needs",
    "inputs",
];
/// The functions that only some expressions may call.
pub(super) const SPECIAL: [&str; 5] = ["always", "cancelled", "success", "failure", "hashFiles"];
/// The functions that every expression may call.
pub(super) const FUNCTIONS: [&str; 8] =
    ["contains", "startsWith", "endsWith", "format", "join", "toJSON", "fromJSON", "case"];

const STATUS: &[&str] = &["always", "cancelled", "success", "failure"];
const HASH: &[&str] = &["hashFiles"];

const OF_WORKFLOW: ExpressionScope =
    ExpressionScope { contexts: &["github", "inputs", "vars"], functions: &[] };
const OF_ENV: ExpressionScope =
    ExpressionScope { contexts: &["github", "secrets", "inputs", "vars"], functions: &[] };
const OF_OUTPUT: ExpressionScope =
    ExpressionScope { contexts: &["github", "jobs", "vars", "inputs"], functions: &[] };
const OF_JOB: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "vars", "inputs"],
    functions: &[],
};
const OF_JOB_IF: ExpressionScope =
    ExpressionScope { contexts: &["github", "needs", "vars", "inputs"], functions: STATUS };
const OF_STRATEGY: ExpressionScope =
    ExpressionScope { contexts: &["github", "needs", "vars", "inputs"], functions: &[] };
const OF_JOB_ENV: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "vars", "secrets", "inputs"],
    functions: &[],
};
const OF_CREDENTIALS: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "env", "vars", "secrets", "inputs"],
    functions: &[],
};
const OF_CONTAINER_ENV: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "job", "runner", "env", "vars", "secrets", "inputs"],
    functions: &[],
};
const OF_DEFAULTS: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "env", "vars", "inputs"],
    functions: &[],
};
const OF_URL: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "job", "runner", "env", "vars", "steps", "inputs"],
    functions: &[],
};
const IN_STEP: &[&str] =
    &["github", "needs", "strategy", "matrix", "job", "runner", "env", "vars", "secrets", "steps", "inputs"];
const OF_JOB_OUTPUT: ExpressionScope = ExpressionScope { contexts: IN_STEP, functions: &[] };
const OF_STEP: ExpressionScope = ExpressionScope { contexts: IN_STEP, functions: HASH };
const OF_STEP_IF: ExpressionScope = ExpressionScope {
    contexts: &["github", "needs", "strategy", "matrix", "job", "runner", "env", "vars", "steps", "inputs"],
    functions: &SPECIAL,
};

const fn key(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, scope: None, is_required: false }
}

const fn scoped(name: &'static str, shape: Shape, scope: &'static ExpressionScope) -> Key {
    Key { name, shape, scope: Some(scope), is_required: false }
}

const fn required(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, scope: None, is_required: true }
}

/// The whole file. `on` is looked at with the events.
pub(super) const WORKFLOW: Shape = Shape::Mapping(&[
    key("name", Shape::Scalar),
    scoped("run-name", Shape::Scalar, &OF_WORKFLOW),
    key("on", Shape::Any),
    key("permissions", PERMISSIONS),
    scoped("env", VARIABLES, &OF_ENV),
    key("defaults", DEFAULTS),
    scoped("concurrency", CONCURRENCY, &OF_WORKFLOW),
    key("jobs", Shape::Identified(&JOB)),
]);

/// Variables, or one expression that yields them.
const VARIABLES: Shape = Shape::Named(&Shape::Scalar);
const CONCURRENCY: Shape = Shape::ScalarOr(&Shape::Mapping(&[
    required("group", Shape::Scalar),
    key("cancel-in-progress", Shape::Bool),
]));
const DEFAULTS: Shape = Shape::Mapping(&[key(
    "run",
    Shape::Mapping(&[key("shell", Shape::Scalar), key("working-directory", Shape::Scalar)]),
)]);

const ACCESS: Shape = Shape::Word(&["read", "write", "none"]);
const PERMISSIONS: Shape = Shape::WordOr(
    &["read-all", "write-all"],
    &Shape::Mapping(&[
        key("actions", ACCESS),
        key("artifact-metadata", ACCESS),
        key("attestations", ACCESS),
        key("checks", ACCESS),
        key("contents", ACCESS),
        key("deployments", ACCESS),
        key("discussions", ACCESS),
        key("id-token", ACCESS),
        key("issues", ACCESS),
        key("models", ACCESS),
        key("packages", ACCESS),
        key("pages", ACCESS),
        key("pull-requests", ACCESS),
        key("repository-projects", ACCESS),
        key("security-events", ACCESS),
        key("statuses", ACCESS),
    ]),
);

const CREDENTIALS: Shape =
    Shape::Mapping(&[required("username", Shape::Scalar), required("password", Shape::Scalar)]);
const CONTAINER: Shape = Shape::ScalarOr(&Shape::Mapping(&[
    required("image", Shape::Scalar),
    scoped("credentials", CREDENTIALS, &OF_CREDENTIALS),
    scoped("env", VARIABLES, &OF_CONTAINER_ENV),
    key("ports", Shape::List(&Shape::Scalar)),
    key("volumes", Shape::List(&Shape::Scalar)),
    key("options", Shape::Scalar),
]));

/// A job (`jobs.<job_id>`). That it has steps, or calls a workflow, is looked at elsewhere.
pub(super) const JOB: Shape = Shape::Mapping(&[
    scoped("name", Shape::Scalar, &OF_JOB),
    key("permissions", PERMISSIONS),
    key("needs", Shape::OneOrMany(&Shape::Scalar)),
    scoped("if", Shape::Scalar, &OF_JOB_IF),
    scoped(
        "runs-on",
        Shape::ListOr(&Shape::ScalarOr(&Shape::Mapping(&[
            key("group", Shape::Scalar),
            key("labels", Shape::OneOrMany(&Shape::Scalar)),
        ]))),
        &OF_JOB,
    ),
    scoped(
        "environment",
        Shape::ScalarOr(&Shape::Mapping(&[
            required("name", Shape::Scalar),
            scoped("url", Shape::Scalar, &OF_URL),
        ])),
        &OF_JOB,
    ),
    scoped("concurrency", CONCURRENCY, &OF_JOB),
    scoped("outputs", Shape::Named(&Shape::Scalar), &OF_JOB_OUTPUT),
    scoped("env", VARIABLES, &OF_JOB_ENV),
    scoped("defaults", DEFAULTS, &OF_DEFAULTS),
    key("steps", Shape::List(&STEP)),
    scoped("timeout-minutes", Shape::Number, &OF_JOB),
    scoped(
        "strategy",
        Shape::Mapping(&[
            key("matrix", Shape::Named(&Shape::ListOr(&Shape::Scalar))),
            key("fail-fast", Shape::Bool),
            key("max-parallel", Shape::Number),
        ]),
        &OF_STRATEGY,
    ),
    scoped("continue-on-error", Shape::Bool, &OF_JOB),
    scoped("container", CONTAINER, &OF_JOB),
    scoped("services", Shape::Named(&CONTAINER), &OF_JOB),
    key("uses", Shape::Scalar),
    scoped("with", Shape::Named(&Shape::Scalar), &OF_JOB),
    scoped("secrets", Shape::WordOr(&["inherit"], &Shape::Named(&Shape::Scalar)), &OF_JOB_ENV),
    key("snapshot", Shape::Any),
]);

/// A step of a job (`jobs.<job_id>.steps`). Which of them go together is looked at elsewhere.
pub(super) static STEP: Shape = Shape::Mapping(&[
    key("id", Shape::Scalar),
    scoped("if", Shape::Scalar, &OF_STEP_IF),
    scoped("name", Shape::Scalar, &OF_STEP),
    key("uses", Shape::Scalar),
    scoped("run", Shape::Scalar, &OF_STEP),
    scoped("working-directory", Shape::Scalar, &OF_STEP),
    key("shell", Shape::Scalar),
    scoped("with", Shape::Named(&Shape::Scalar), &OF_STEP),
    scoped("env", VARIABLES, &OF_STEP),
    scoped("continue-on-error", Shape::Bool, &OF_STEP),
    scoped("timeout-minutes", Shape::Number, &OF_STEP),
    key("background", Shape::Bool),
    key("wait", Shape::OneOrMany(&Shape::Scalar)),
    key("wait-all", Shape::Any),
    key("cancel", Shape::Scalar),
    key("parallel", Shape::List(&STEP)),
]);

/// An input of `workflow_dispatch`.
pub(super) const DISPATCH: Shape = Shape::Mapping(&[key(
    "inputs",
    Shape::Identified(&Shape::Mapping(&[
        key("description", Shape::Scalar),
        key("deprecationMessage", Shape::Scalar),
        key("required", Shape::Bool),
        key("default", Shape::Scalar),
        key("type", Shape::Word(&["string", "boolean", "choice", "number", "environment"])),
        key("options", Shape::List(&Shape::Scalar)),
    ])),
)]);

/// What `workflow_call` takes and gives.
pub(super) const CALL: Shape = Shape::Mapping(&[
    key(
        "inputs",
        Shape::Identified(&Shape::Mapping(&[
            key("description", Shape::Scalar),
            key("deprecationMessage", Shape::Scalar),
            key("required", Shape::Bool),
            scoped("default", Shape::Scalar, &OF_WORKFLOW),
            required("type", Shape::Word(&["string", "boolean", "number"])),
        ])),
    ),
    key(
        "outputs",
        Shape::Identified(&Shape::Mapping(&[
            key("description", Shape::Scalar),
            Key { is_required: true, ..scoped("value", Shape::Scalar, &OF_OUTPUT) },
        ])),
    ),
    key(
        "secrets",
        Shape::Identified(&Shape::Mapping(&[
            key("description", Shape::Scalar),
            key("required", Shape::Bool),
        ])),
    ),
]);
