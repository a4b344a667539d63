//! As whom a request acts, and what it wants to be allowed.

use http::Method;

use super::{context::Context, path::Route};
use crate::{
    ApiError, ApiResult,
    auth::{self, Attributes, User},
};

/// The user that a request acts as, if its headers name one and its own user may do that.
pub(super) fn impersonated(context: &Context<'_>) -> ApiResult<User> {
    let name = context.header("impersonate-user");
    let all = |header: &str| -> Vec<String> {
        let values = context.headers.get_all(header).iter();
        values.filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
    };
    let groups = all("impersonate-group");
    let uid = context.header("impersonate-uid");
    let extra = impersonated_extra(context);
    if name.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(context.user.clone());
        }
        let quoted: Vec<String> = groups.iter().map(|group| tiphys_schema::quote(group)).collect();
        return Err(ApiError::bad_request(format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:[]string{{{}}}, Extra:map[string][]string(nil)}} without impersonating a user name",
            tiphys_schema::quote(uid),
            quoted.join(", ")
        )));
    }
    let service_account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let may = |group: &str, resource: &str, namespace: &str, name: &str| {
        let wish = Attributes {
            verb: "impersonate".into(),
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            path: String::new(),
        };
        auth::authorize(context.server, &context.user, &wish)
    };
    match service_account {
        Some((namespace, account)) => may("", "serviceaccounts", namespace, account)?,
        None => may("", "users", "", name)?,
    }
    groups.iter().try_for_each(|group| may("", "groups", "", group))?;
    for (key, values) in &extra {
        let resource = format!("userextras/{key}");
        values.iter().try_for_each(|value| may("authentication.k8s.io", &resource, "", value))?;
    }
    let mut user = match service_account {
        Some((namespace, account)) if groups.is_empty() => User::service_account(namespace, account, ""),
        _ => User { name: name.to_owned(), ..User::default() },
    };
    user.groups.extend(groups);
    let known = if name == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
    if !user.groups.iter().any(|group| group == known) {
        user.groups.push(known.into());
    }
    user.uid = uid.to_owned();
    user.extra = extra;
    Ok(user)
}

fn impersonated_extra(context: &Context<'_>) -> std::collections::BTreeMap<String, Vec<String>> {
    let mut extra: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for (name, value) in context.headers {
        let Some(key) = name.as_str().strip_prefix("impersonate-extra-") else { continue };
        if let Ok(value) = value.to_str() {
            extra.entry(super::query::decode(key)).or_default().push(value.to_owned());
        }
    }
    extra
}

pub(super) fn wish(context: &Context<'_>, route: &Route<'_>) -> Attributes {
    let Route::Resource(path) = route else {
        let verb = context.method.as_str().to_lowercase();
        return Attributes { verb, path: context.path.to_owned(), ..Attributes::default() };
    };
    let many = path.name.is_empty();
    let watches = path.watch || (context.query.flag("watch") && many);
    let verb = match (context.method, many) {
        (&Method::GET | &Method::HEAD, _) if watches => "watch",
        (&Method::GET | &Method::HEAD, true) => "list",
        (&Method::GET | &Method::HEAD, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    };
    let resource = match path.subresource {
        Some(sub) => format!("{}/{sub}", path.plural),
        None => path.plural.to_owned(),
    };
    Attributes {
        verb: verb.into(),
        group: path.group.into(),
        resource,
        namespace: if path.plural == "namespaces" { path.name } else { path.namespace }.into(),
        name: path.name.into(),
        path: String::new(),
    }
}
