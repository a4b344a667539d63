//! # An address of a database names a user or database that its Cluster does not have
//!
//! CloudNativePG makes one database and its owner when a Cluster starts, as `bootstrap.initdb` says (both are
//! `app` where it says nothing), and others only through `managed.roles` and Database resources. An address
//! with another name is answered with a refusal.
//!
//! People see: `password authentication failed for user "shop"`, `role "shop" does not exist`, `database
//! "shop" does not exist`.
//!
//! ## Bad
//! ```yaml
//! kind: Cluster                      # of postgresql.cnpg.io
//! metadata: {name: shop-db, namespace: shop}
//! spec: {bootstrap: {initdb: {database: shop, owner: shop_owner}}}
//! ---
//! kind: ConfigMap
//! data: {URL: "postgresql://shop:$(PASSWORD)@shop-db-rw:5432/shop"}
//! ```
//! ## Good
//! ```yaml
//! data: {URL: "postgresql://shop_owner:$(PASSWORD)@shop-db-rw:5432/shop"}
//! ```
//! ## When to suppress
//! Where the role or the database was made by hand.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
        unused_files,
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-database-user",
    incident: "E2",
    severity: Severity::Warning,
    title: "an address of a database names a user or database that its Cluster does not have",
    page: page!("e2_database_user.rs"),
    check,
};

/// The address of a database of CloudNativePG: its user, its Cluster, its namespace, its database.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"postgres(?:ql)?(?:\+[a-z0-9]+)?://([A-Za-z0-9_-]+)(?::[^\s/]*)?@([a-z0-9][a-z0-9-]*)-(?:rw|ro|r)(?:\.([a-z0-9-]+)(?:\.svc[a-z.]*)?)?(?::\d+)?/([A-Za-z0-9_-]+)(?:[^A-Za-z0-9_$({-]|$)",
    )
    .expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let clusters: Vec<&Object> = survey
        .objects
        .iter()
        .filter(|it| it.key.group == "postgresql.cnpg.io" && it.key.kind == "Cluster")
        .collect();
    if clusters.is_empty() {
        return;
    }
    let mut once = Once::default();
    for cluster in clusters.iter().filter(|it| !unused_files::is_in_unused_folder(&it.rendered.location.file))
    {
        secrets_of_others(context, cluster, &mut once);
    }
    for object in &survey.objects {
        if unused_files::is_in_unused_folder(&object.rendered.location.file) {
            continue;
        }
        let mut found = Vec::new();
        each_text(object.value(), &mut Vec::new(), &|_| true, &mut |steps, text| {
            if !text.contains("postgres") || text.trim_start().starts_with('#') {
                return;
            }
            for address in ADDRESS.captures_iter(text) {
                found.push((address, path_below(FieldPath::default(), steps)));
            }
        });
        for (address, path) in found {
            let namespace = address.get(3).map_or(object.key.namespace.as_str(), |it| it.as_str());
            let named =
                clusters.iter().filter(|it| it.key.name == address[2] && it.key.namespace == namespace);
            let named: Vec<&Object> = named.copied().collect();
            let [cluster] = named.as_slice() else { continue };
            let Some(known) = Contents::of_cluster(survey, cluster) else { continue };
            let (user, database) = (&address[1], &address[4]);
            let what = if !known.users.contains(user) {
                format!("user {user}")
            } else if !known.databases.contains(database) {
                format!("database {database}")
            } else {
                continue;
            };
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} names the {what}, which {} does not have",
                    object.title(),
                    cluster.title()
                ))
                .at(survey.span(object, &path), "in this text")
                .see(
                    survey.start(cluster),
                    format!("it makes database {} for user {}", known.database, known.owner),
                )
                .because("the server knows the users and databases that its Cluster makes, and no others");
            once.add(
                &format!("{what} {}", cluster.key.name),
                RULE.finding(context, object, diagnostic).likely(),
            );
        }
    }
    once.report(report);
}

/// Secrets that a Cluster takes a user's password from, and that name another user.
fn secrets_of_others(context: &Context<'_>, cluster: &Object, once: &mut Once) {
    let spec = &cluster.value()["spec"];
    let managed = spec.get("managed").map(|it| list(it, "roles")).unwrap_or_default();
    let mut users: Vec<(&str, &str, FieldPath)> = Vec::new();
    for (at, role) in managed.iter().enumerate() {
        let secret = role.str_at(&["passwordSecret", "name"]).unwrap_or_default();
        let path = keys(&["spec", "managed", "roles"]).index(at).key("passwordSecret").key("name");
        users.push((text(role, "name"), secret, path));
    }
    if let Some(initdb) = spec.at(&["bootstrap", "initdb"]) {
        let secret = initdb.str_at(&["secret", "name"]).unwrap_or_default();
        users.push((text(initdb, "owner"), secret, keys(&["spec", "bootstrap", "initdb", "secret", "name"])));
    }
    for (user, secret, path) in
        users.into_iter().filter(|(user, secret, _)| !user.is_empty() && !secret.is_empty())
    {
        let key = ResourceKey::new("", "Secret", &cluster.key.namespace, secret);
        let mut made = context.survey.with_key(&key).filter(|it| it.lives_with(cluster));
        let Some(made) = made.next() else { continue };
        let Some(named) = made.value().str_at(&["stringData", "username"]) else { continue };
        if named == user
            || placeholders::is_in(named)
            || placeholders::is_in(user)
            || named.starts_with("ENC[")
        {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!("{} has user {user}, and Secret/{secret} is for {named}", cluster.title()))
            .at(context.survey.span(cluster, &path), "its password is taken from there")
            .see(context.survey.span(made, &keys(&["stringData", "username"])), format!("names {named}"))
            .because("the operator takes a password only from a Secret whose username is that of the user")
            .help(format!("write username: {user}"));
        once.add(secret, RULE.finding(context, cluster, diagnostic));
    }
}

/// The users and databases that a Cluster makes.
struct Contents {
    database: String,
    owner: String,
    users: BTreeSet<String>,
    databases: BTreeSet<String>,
}

impl Contents {
    /// `None` where statements of SQL, another server or a backup may bring others.
    fn of_cluster(survey: &Survey, cluster: &Object) -> Option<Self> {
        let spec = &cluster.value()["spec"];
        let bootstrap = spec.get("bootstrap").and_then(Value::as_object);
        let is_other = bootstrap.is_some_and(|it| it.keys().any(|way| way != "initdb"));
        let nothing = Value::Null;
        let initdb = spec.at(&["bootstrap", "initdb"]).unwrap_or(&nothing);
        let is_open =
            initdb.as_object().is_some_and(|it| it.keys().any(|key| key.contains("SQL") || key == "import"));
        let database = if text(initdb, "database").is_empty() { "app" } else { text(initdb, "database") };
        let owner = if text(initdb, "owner").is_empty() { database } else { text(initdb, "owner") };
        if is_other || is_open || placeholders::is_in(database) || placeholders::is_in(owner) {
            return None;
        }
        let mut users: BTreeSet<String> = [owner, "postgres"].map(str::to_owned).into();
        let managed = spec.get("managed").map(|it| list(it, "roles")).unwrap_or_default();
        users.extend(managed.iter().map(|role| text(role, "name").to_owned()));
        let mut databases: BTreeSet<String> = [database, "postgres"].map(str::to_owned).into();
        let made =
            survey.objects.iter().filter(|it| it.key.group == cluster.key.group && it.key.kind == "Database");
        let made =
            made.filter(|it| it.value().str_at(&["spec", "cluster", "name"]) == Some(&cluster.key.name));
        databases.extend(made.map(|it| text(&it.value()["spec"], "name").to_owned()));
        Some(Self { database: database.to_owned(), owner: owner.to_owned(), users, databases })
    }
}
