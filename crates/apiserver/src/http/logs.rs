//! `pods/log`: no program runs, so what is said is what the cluster knows of one: the events of its container
//! and the line that it would end with.

use http::Response;
use tiphys_value::{ObjectExt, Value};

use super::{ResponseBody, context::Context, response::raw_response};
use crate::{
    ApiError, ApiResult,
    ops::{self, At},
    store::ResourceId,
};

/// Said first, so that nobody takes what follows for a program's output.
const HEADING: &str = "# No program runs in this container. The cluster plays its life; what it knows:";

/// Answers `GET …/pods/NAME/log`.
pub(super) fn serve(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
    let pod = ops::get(context.server, at)?;
    let name = container(pod.value(), context.query.get("container"))?;
    // What no node has taken has no log, not even an empty one.
    if pod.str_at(&["spec", "nodeName"]).is_none_or(str::is_empty) {
        return Ok(raw_response(204, "text/plain", ""));
    }
    let status = container_status(pod.value(), &name).cloned().unwrap_or_default();
    let state = match context.query.flag("previous") {
        true if status["lastState"]["terminated"].is_object() => &status["lastState"],
        true => {
            let why = format!(
                "previous terminated container {} in pod {} not found",
                tiphys_schema::quote(&name),
                tiphys_schema::quote(pod.name())
            );
            return Err(ApiError::bad_request(why));
        }
        false => &status["state"],
    };
    if let Some(reason) = state["waiting"]["reason"].as_str()
        && !status["lastState"]["terminated"].is_object()
    {
        let why = format!(
            "container {} in pod {} is waiting to start: {}",
            tiphys_schema::quote(&name),
            tiphys_schema::quote(pod.name()),
            state["waiting"]["message"].as_str().unwrap_or(reason)
        );
        return Err(ApiError::bad_request(why));
    }
    let ended = [state, &status["lastState"]].into_iter().find(|state| state["terminated"].is_object());
    let mut lines = vec![HEADING.to_owned()];
    lines.extend(events(context, pod.value(), &name));
    lines.extend(ended.and_then(last_line));
    Ok(raw_response(200, "text/plain", cut(&lines, context)))
}

/// The container that is meant: the one that is named, or the only one, or the one that an annotation names.
fn container(pod: &Value, asked: &str) -> ApiResult<String> {
    let name = pod.name();
    let of = |field: &str| -> Vec<String> {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        containers.map(|container| container["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let containers = of("containers");
    let all: Vec<String> =
        containers.iter().cloned().chain(of("initContainers")).chain(of("ephemeralContainers")).collect();
    if !asked.is_empty() {
        return match all.iter().any(|known| known == asked) {
            true => Ok(asked.to_owned()),
            false => Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}"))),
        };
    }
    match containers.as_slice() {
        [one] => Ok(one.clone()),
        many => {
            let init = of("initContainers");
            let mut choice = format!("choose one of: [{}]", many.join(" "));
            if !init.is_empty() {
                choice.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
            }
            Err(ApiError::bad_request(format!("a container name must be specified for pod {name}, {choice}")))
        }
    }
}

fn container_status<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let statuses = lists.into_iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    statuses.into_iter().find(|status| status["name"] == name)
}

/// The events about the container and those about the whole pod, oldest first.
fn events(context: &Context<'_>, pod: &Value, container: &str) -> Vec<String> {
    let snapshot = context.server.snapshot();
    let uid = pod.str_at(&["metadata", "uid"]).unwrap_or_default();
    let mentions = |event: &Value| {
        let field = event.str_at(&["involvedObject", "fieldPath"]).unwrap_or_default();
        field.is_empty() || field.ends_with(&format!("{{{container}}}"))
    };
    let about = snapshot.list(&ResourceId::new("", "events"), Some(pod.namespace()));
    let mut found: Vec<(String, String)> = about
        .filter(|event| event.str_at(&["involvedObject", "uid"]) == Some(uid) && mentions(event))
        .map(|event| {
            let text = |key: &str| event.str_at(&[key]).unwrap_or_default().to_owned();
            let time = ["lastTimestamp", "eventTime", "firstTimestamp"].map(text);
            let time = time.into_iter().find(|time| !time.is_empty()).unwrap_or_default();
            let line = format!("# {time}  {:<7}  {}: {}", text("type"), text("reason"), text("message"));
            (time, line)
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, line)| line).collect()
}

/// The line that a program ends with, and its code.
fn last_line(state: &Value) -> Option<String> {
    let ended = &state["terminated"];
    let message = ended["message"].as_str().filter(|message| !message.is_empty());
    let code = ended["exitCode"].as_i64()?;
    let reason = ended["reason"].as_str().unwrap_or("Completed");
    let told = format!("# ended with code {code} ({reason})");
    Some(message.map_or(told.clone(), |message| format!("{}\n{told}", message.trim_end())))
}

/// As many lines and bytes as are asked for.
fn cut(lines: &[String], context: &Context<'_>) -> String {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let all: Vec<&str> = text.lines().collect();
    let tail = context.query.get("tailLines").parse::<usize>().unwrap_or(all.len());
    let mut out: String =
        all[all.len().saturating_sub(tail)..].iter().map(|line| format!("{line}\n")).collect();
    if let Ok(limit) = context.query.get("limitBytes").parse::<usize>()
        && limit < out.len()
    {
        let end = (0..=limit).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
        out.truncate(end);
    }
    out
}
