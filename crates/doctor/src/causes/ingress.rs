//! The way in from outside: classes, backends, certificates, redirects, routes, controllers.

use tiphys_cause::{Cause, Failure};
use tiphys_value::{ObjectExt as _, Value, json};

use crate::{
    Object,
    calls::{self, Caller},
    causes::service::{is_denied_by_cloud, load_balancer_makers},
    cluster::{certificate::Certificate, condition, condition_text, conditions, items, pods, time},
    finding::Finding,
    log_evidence::Fact,
    pod_addresses::settings,
    search_context::Look,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = look
        .cluster
        .all("Ingress")
        .iter()
        .filter(|it| look.cluster.age(it) > 120 && !it.is_terminating())
        .flat_map(|ingress| ingress_faults(look, ingress))
        .collect();
    for kind in ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"] {
        found.extend(look.cluster.all(kind).iter().filter_map(|route| route_fault(look, route)));
    }
    let is_of_router = |it: &&&Value| it.api_version().starts_with("route.openshift.io/");
    found.extend(
        look.cluster.all("Route").iter().filter(is_of_router).filter_map(|route| router_fault(look, route)),
    );
    found.extend(look.cluster.all("Gateway").iter().filter_map(|gateway| gateway_fault(look, gateway)));
    found.extend(look.cluster.all("GatewayClass").iter().filter_map(|class| refused_class(look, class)));
    found.extend(controllers(look));
    found
}

fn ingress_faults(look: &Look<'_>, ingress: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(class(look, ingress));
    let rules = items(ingress, &["spec", "rules"]).flat_map(|rule| items(rule, &["http", "paths"]));
    let backends =
        rules.filter_map(|path| path.get("backend")).chain(ingress.at(&["spec", "defaultBackend"]));
    found.extend(backends.filter_map(|backend| backend_fault(look, ingress, backend)));
    found.extend(items(ingress, &["spec", "tls"]).filter_map(|tls| tls_fault(look, ingress, tls)));
    found.extend(redirect(look, ingress));
    found.extend(not_built(look, ingress).filter(|_| found.is_empty()));
    found
}

/// An Ingress for which its controller cannot make a load balancer, as the controller says.
fn not_built(look: &Look<'_>, ingress: &Value) -> Option<Finding> {
    let object = Object::from_live(ingress);
    let has_address = items(ingress, &["status", "loadBalancer", "ingress"]).next().is_some();
    let last = look.cluster.events(&object).next_back()?;
    if has_address || !last.is_warning() || look.cluster.age(ingress) < 180 {
        return None;
    }
    if let Some(finding) = failed_call(look, &object, &last.message) {
        return Some(finding);
    }
    let denied = is_denied_by_cloud(&last.message);
    let (cause, remedy) = if denied {
        (Cause::OperatorCloudCredentials, "Give the controller's identity the right that the message names.")
    } else {
        (Cause::ServiceLoadBalancer, "Do what the controller's message asks for; then it tries again.")
    };
    let finding = Finding::new(
        cause,
        object.clone(),
        0.88,
        format!("{object} gets no address: its controller cannot make the load balancer"),
    )
    .field("status.loadBalancer")
    .evidence(format!("Event of {object}"), last.message.clone())
    .remedy(remedy, &[format!("kubectl -n {} describe ingress {}", object.namespace, object.name)]);
    Some(load_balancer_makers(look).into_iter().fold(finding, Finding::below))
}

/// What explains the calls of a controller of load balancers that fail, as it says itself.
fn failed_call(look: &Look<'_>, object: &Object, message: &str) -> Option<Finding> {
    let workload = load_balancer_makers(look).into_iter().next()?;
    let caller = Caller::of_workload(look.cluster, workload);
    let spec = caller.pods.first().and_then(|pod| pod.get("spec"));
    let settings = spec.map(|spec| settings(look.cluster, spec, &caller.workload.namespace));
    let caller = Caller { settings: settings.unwrap_or_default(), ..caller };
    let source = format!("Event of {object}");
    let symptom = "its controller calls in vain";
    let found = calls::explain_text(look, &caller, (&source, message), (object, symptom));
    found.into_iter().find(Finding::is_asserted)
}

/// A class that no controller serves.
fn class(look: &Look<'_>, ingress: &Value) -> Option<Finding> {
    let object = Object::from_live(ingress);
    let has_address = items(ingress, &["status", "loadBalancer", "ingress"]).next().is_some();
    if has_address || !look.cluster.has_kind("IngressClass") {
        return None;
    }
    let name = ingress
        .str_at(&["spec", "ingressClassName"])
        .or_else(|| ingress.annotation("kubernetes.io/ingress.class"));
    let classes: Vec<&str> = look.cluster.all("IngressClass").iter().map(|class| class.name()).collect();
    // A controller that speaks of it serves it, whether its class is an object or a word.
    let is_served = look.cluster.events(&object).next().is_some();
    let what = match name {
        Some(name) if classes.contains(&name) || is_served => return None,
        Some(name) => format!("no IngressClass {name} exists"),
        None => {
            let default =
                look.cluster.all("IngressClass").iter().any(|class| {
                    class.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true")
                });
            if default {
                return None;
            }
            "it names no class, and none is the default".to_owned()
        }
    };
    Some(
        Finding::new(
            Cause::EdgeClass,
            object.clone(),
            0.92,
            format!("no controller serves {object}: {what}"),
        )
        .field("spec.ingressClassName")
        .evidence(
            object.to_string(),
            format!("ingressClassName {}; it has no address", name.unwrap_or("is not set")),
        )
        .evidence("IngressClasses", classes.join(", "))
        .remedy(format!("Use one of: {}.", classes.join(", ")), &["kubectl get ingressclass".to_owned()]),
    )
}

/// A backend that names an absent Service or port.
fn backend_fault(look: &Look<'_>, ingress: &Value, backend: &Value) -> Option<Finding> {
    let object = Object::from_live(ingress);
    let name = backend.str_at(&["service", "name"])?;
    let has_address = look.cluster.get("Service", ingress.namespace(), name);
    let Some(service) = has_address else {
        if !look.cluster.knows_services() {
            return None;
        }
        let near: Vec<&str> = look
            .cluster
            .all("Service")
            .iter()
            .filter(|it| {
                it.namespace() == ingress.namespace() && crate::address_target::is_near(it.name(), name)
            })
            .map(|it| it.name())
            .collect();
        return Some(
            Finding::new(
                Cause::EdgeBackend,
                object.clone(),
                0.92,
                format!("{object} leads to the Service {name}, which does not exist"),
            )
            .field("spec.rules.http.paths.backend.service.name")
            .evidence("near names", near.join(", "))
            .remedy(
                "Correct the Service's name, or make the Service.",
                &[format!("kubectl -n {} get services", object.namespace)],
            ),
        );
    };
    let ports: Vec<&Value> = items(service, &["spec", "ports"]).collect();
    let (number, port_name) =
        (backend.int_at(&["service", "port", "number"]), backend.str_at(&["service", "port", "name"]));
    let is_there = ports.iter().any(|port| {
        number.is_some() && port.int_at(&["port"]) == number
            || port_name.is_some() && port.str_at(&["name"]) == port_name
    });
    if is_there
        || number.is_none() && port_name.is_none()
        || port_name == Some("use-annotation")
        || service.str_at(&["spec", "type"]) == Some("ExternalName")
    {
        return None;
    }
    let asked = number.map_or_else(|| port_name.unwrap_or_default().to_owned(), |number| number.to_string());
    let served: Vec<String> = ports
        .iter()
        .map(|port| {
            format!(
                "{} {}",
                port.int_at(&["port"]).unwrap_or_default(),
                port.str_at(&["name"]).unwrap_or_default()
            )
            .trim()
            .to_owned()
        })
        .collect();
    Some(
        Finding::new(
            Cause::EdgeBackend,
            object.clone(),
            0.92,
            format!(
                "{object} leads to port {asked} of the Service {name}, which serves {}",
                served.join(", ")
            ),
        )
        .field("spec.rules.http.paths.backend.service.port")
        .evidence(Object::from_live(service).to_string(), format!("ports: {}", served.join(", ")))
        .remedy(format!("Use one of the Service's ports: {}.", served.join(", ")), &[]),
    )
}

/// A certificate that is absent or has expired.
fn tls_fault(look: &Look<'_>, ingress: &Value, tls: &Value) -> Option<Finding> {
    let object = Object::from_live(ingress);
    let name = tls.str_at(&["secretName"]).filter(|name| !name.is_empty())?;
    let secret = Object::new("Secret", ingress.namespace(), name);
    let hosts: Vec<&str> = items(tls, &["hosts"]).filter_map(Value::as_str).collect();
    let Some(live) = look.cluster.live(&secret) else {
        let is_made = crate::dependencies::upstream(look.cluster, &secret);
        if !look.cluster.has_kind("Secret") && !is_made.iter().any(|maker| look.is_red(maker)) {
            return None;
        }
        let finding = Finding::new(Cause::EdgeTlsSecret, secret.clone(), 0.9, format!("{secret}, the certificate of {}, does not exist: the controller shows its default certificate", hosts.join(", ")))
            .field("spec.tls.secretName")
            .evidence(object.to_string(), format!("secretName: {name}"))
            .suffers(object, "shows the default certificate")
            .remedy("Make the Secret, or let a Certificate make it.", &[format!("kubectl -n {} get certificate,secret", ingress.namespace())]);
        // Whether a Certificate that should make it is in trouble is not known.
        let asks = ["cert-manager.io/cluster-issuer", "cert-manager.io/issuer"];
        let is_asked = asks.iter().any(|key| ingress.annotation(key).is_some());
        let is_unseen = is_asked && !look.cluster.has_kind("Certificate") || !look.cluster.knows_makers();
        let finding = if is_unseen { finding.not_known() } else { finding };
        return Some(is_made.into_iter().fold(finding, Finding::below));
    };
    if let Some((source, line)) = told_of_other_names(look, &secret) {
        let summary = format!(
            "the certificate in {secret} is not for {}: the controller shows its own",
            hosts.join(", ")
        );
        let finding = Finding::new(Cause::EdgeTlsSecret, secret.clone(), 0.85, summary)
            .evidence(source, line)
            .suffers(object, "shows another certificate")
            .remedy("Put a certificate for the names of the Ingress into the Secret.", &[]);
        return Some(
            crate::dependencies::upstream(look.cluster, &secret).into_iter().fold(finding, Finding::below),
        );
    }
    if let Some((source, line)) = told_unusable(look, &secret) {
        let summary = format!("the certificate in {secret} cannot be used: the controller shows its own");
        let finding = Finding::new(Cause::EdgeTlsSecret, secret.clone(), 0.85, summary)
            .evidence(source, line)
            .suffers(object, "shows another certificate")
            .remedy("Put a certificate and the key that belongs to it into the Secret.", &[]);
        return Some(
            crate::dependencies::upstream(look.cluster, &secret).into_iter().fold(finding, Finding::below),
        );
    }
    let now = look.cluster.now?;
    let first = Certificate::all_of_secret(live, "tls.crt").into_iter().next();
    let ended = first.filter(|certificate| certificate.not_after < now)?;
    let finding = Finding::new(
        Cause::EdgeCertificateExpired,
        secret.clone(),
        0.95,
        format!("the certificate of {} in {secret} expired at {}", hosts.join(", "), ended.not_after),
    )
    .since(Some(ended.not_after))
    .evidence(secret.to_string(), format!("valid until {}", ended.not_after))
    .suffers(object, "shows an expired certificate")
    .remedy(
        "Renew the certificate; see why it was not renewed.",
        &[format!("kubectl -n {} describe certificate", ingress.namespace())],
    );
    Some(crate::dependencies::upstream(look.cluster, &secret).into_iter().fold(finding, Finding::below))
}

/// The line by which a controller of Ingresses says that the certificate of a Secret is for other names.
fn told_of_other_names(look: &Look<'_>, secret: &Object) -> Option<(String, String)> {
    let name = format!("{}/{}", secret.namespace, secret.name);
    let tells = |line: &&str| {
        line.contains(&name) && line.contains("does not contain a Common Name or Subject Alternative Name")
    };
    let mut logs = controller_logs(look);
    logs.find_map(|log| Some((log.source(), log.last_lines().find(tells)?.to_owned())))
}

/// What the controllers of Ingresses log.
fn controller_logs<'a>(look: &Look<'a>) -> impl Iterator<Item = &'a crate::Log> {
    let is_controller = |pod: &&&Value| CONTROLLERS.iter().any(|name| pod.name().contains(name));
    let pods = look.cluster.all("Pod").iter().filter(is_controller);
    pods.flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()))
}

/// The line by which a controller of Ingresses says what is wrong with the certificate of a Secret that it
/// names beside it.
fn told_unusable(look: &Look<'_>, secret: &Object) -> Option<(String, String)> {
    const WORDS: &[&str] = &[
        "private key does not match",
        "does not have a matching public key",
        "failed to find any pem data",
        "no valid pem formatted block",
        "tls: failed to parse private key",
        "tls: failed to find certificate",
    ];
    /// A controller says what is wrong and of which Secret in lines that follow each other.
    const NEAR: usize = 3;
    let name = format!("{}/{}", secret.namespace, secret.name);
    let tells = |line: &&&str| {
        let low = line.to_ascii_lowercase();
        WORDS.iter().any(|word| low.contains(word))
    };
    controller_logs(look).find_map(|log| {
        let lines: Vec<&str> = log.last_lines().collect();
        let mut near = lines.windows(NEAR.min(lines.len().max(1)));
        let about = near.find(|near| {
            near.iter().any(|line| line.contains(&name)) && near.iter().any(|line| tells(&line))
        })?;
        Some((log.source(), (*about.iter().find(tells)?).to_owned()))
    })
}

/// TLS ends before a server that demands TLS.
fn redirect(look: &Look<'_>, ingress: &Value) -> Option<Finding> {
    let object = Object::from_live(ingress);
    let loops = look
        .ill
        .iter()
        .flat_map(|ill| &ill.facts)
        .find(|fact| matches!(&fact.fact, Fact::Call(call) if call.failure == Failure::RedirectLoop));
    let told = loops.map(|fact| (fact.source.clone(), fact.line.clone())).or_else(|| looping(look, ingress));
    let backend = items(ingress, &["spec", "rules"])
        .flat_map(|rule| items(rule, &["http", "paths"]))
        .filter_map(|path| path.get("backend"))
        .find_map(|backend| {
            let service =
                look.cluster.get("Service", ingress.namespace(), backend.str_at(&["service", "name"])?)?;
            look.cluster.workloads_of(service).into_iter().next().map(|workload| (backend, workload))
        });
    let (backend, workload) = backend?;
    let speaks_tls = [
        "nginx.ingress.kubernetes.io/backend-protocol",
        "traefik.ingress.kubernetes.io/service.serversscheme",
        "alb.ingress.kubernetes.io/backend-protocol",
    ]
    .iter()
    .any(|key| {
        ingress
            .annotation(key)
            .is_some_and(|it| it.eq_ignore_ascii_case("https") || it.eq_ignore_ascii_case("grpcs"))
    }) || ingress.annotation("nginx.ingress.kubernetes.io/ssl-passthrough") == Some("true");
    let text = pods::spec(workload).map(ToString::to_string).unwrap_or_default();
    let config = look.cluster.get("ConfigMap", workload.namespace(), "argocd-cmd-params-cm");
    let is_insecure = text.contains("--insecure")
        || config.and_then(|it| it.str_at(&["data", "server.insecure"])) == Some("true");
    let is_argo = text.contains("argocd")
        && workload.name().contains("server")
        && !workload.name().contains("repo")
        && !is_insecure;
    let forces = [
        "FORCE_SSL",
        "FORCE_HTTPS",
        "SECURE_SSL_REDIRECT",
        "--force-https",
        "redirect-to-https",
        "HTTPS_ONLY",
    ]
    .iter()
    .any(|word| text.contains(word));
    let ends_here =
        items(ingress, &["spec", "tls"]).next().is_some() || ingress.to_string().contains("certificate-arn");
    if speaks_tls || told.is_none() && !(is_argo && ends_here) || !(is_argo || forces || told.is_some()) {
        return None;
    }
    let confidence = match (&told, is_argo || forces) {
        (Some(_), true) => 0.93,
        (None, true) => 0.6,
        _ => 0.55,
    };
    let owner = Object::from_live(workload);
    let mut finding = Finding::new(Cause::EdgeRedirectLoop, object.clone(), confidence, format!("{object} ends TLS and speaks plain HTTP to {owner}, which redirects to HTTPS, for ever"))
        .field("metadata.annotations")
        .evidence(object.to_string(), format!("backend {backend}, no backend protocol HTTPS"))
        .evidence(owner.to_string(), if is_argo { "runs without --insecure" } else { "redirects to HTTPS" })
        .suffers(owner, "cannot be reached from outside")
        .remedy("Let the server speak plain HTTP behind the Ingress (server.insecure: \"true\"), or set the backend protocol to HTTPS.", &[]);
    if let Some((source, line)) = told {
        finding = finding.evidence(source, line);
    }
    Some(finding)
}

/// The log of an ingress controller, or of a server behind one, that answers with redirects only.
fn looping(look: &Look<'_>, ingress: &Value) -> Option<(String, String)> {
    const CONTROLLERS: &[&str] = &["ingress", "traefik", "haproxy", "gateway"];
    let hosts: Vec<&str> =
        items(ingress, &["spec", "rules"]).filter_map(|rule| rule.str_at(&["host"])).collect();
    let backends: Vec<&str> = items(ingress, &["spec", "rules"])
        .flat_map(|rule| items(rule, &["http", "paths"]))
        .filter_map(|path| path.str_at(&["backend", "service", "name"]))
        .collect();
    let is_redirect = |line: &str| {
        [" 307", " 308", " 301", " 302", "=307", "=308", "=301", "=302"]
            .iter()
            .any(|code| line.contains(code))
    };
    for log in &look.cluster.case.logs {
        let is_controller = CONTROLLERS.iter().any(|word| log.pod.contains(word));
        let is_server =
            log.namespace == ingress.namespace() && backends.iter().any(|name| log.pod.starts_with(name));
        let lines: Vec<&str> = log
            .text
            .lines()
            .filter(|line| is_redirect(line))
            .filter(|line| {
                is_server && line.contains("https://")
                    || is_controller && hosts.iter().any(|host| line.contains(host))
            })
            .collect();
        if lines.len() >= 3 {
            return Some((log.source(), lines[0].to_owned()));
        }
        let told = log.text.lines().find(|line| {
            line.contains("ERR_TOO_MANY_REDIRECTS")
                || line.to_ascii_lowercase().contains("too many redirects")
        });
        if let Some(line) = told.filter(|line| is_server || hosts.iter().any(|host| line.contains(host))) {
            return Some((log.source(), line.to_owned()));
        }
    }
    None
}

/// A Route of OpenShift that its router does not take, or that leads nowhere.
fn router_fault(look: &Look<'_>, route: &Value) -> Option<Finding> {
    let object = Object::from_live(route);
    let describe = format!("kubectl -n {} describe route {}", object.namespace, object.name);
    let refused = items(route, &["status", "ingress"]).find_map(|router| {
        let bad = items(router, &["conditions"])
            .find(|it| it.str_at(&["type"]) == Some("Admitted") && it.str_at(&["status"]) == Some("False"))?;
        Some((router.str_at(&["routerName"]).unwrap_or_default(), bad))
    });
    if let Some((router, bad)) = refused {
        let words = condition_text(bad);
        let summary = format!("the router {router} refuses {object}: {words}");
        return Some(
            Finding::new(Cause::EdgeRouteRefused, object.clone(), 0.92, summary)
                .since(time(bad, &["lastTransitionTime"]))
                .evidence(format!("{object}, condition Admitted"), words)
                .remedy(
                    "Correct what the condition names: the host, the path, the certificate.",
                    &[describe],
                ),
        );
    }
    // A router takes the first of several backends whose weight is not zero; all have to exist.
    let others = items(route, &["spec", "alternateBackends"]);
    let backends = route.at(&["spec", "to"]).into_iter().chain(others);
    let names = backends.filter_map(|backend| backend.str_at(&["name"]));
    let port = route.str_at(&["spec", "port", "targetPort"]).map(|port| json!({"name": port}));
    names.into_iter().find_map(|name| {
        let backend = json!({"service": {"name": name, "port": port}});
        let finding = backend_fault(look, route, &backend)?;
        Some(Finding { field: Some("spec.to".to_owned()), ..finding })
    })
}

/// A route that its gateway refuses.
fn route_fault(look: &Look<'_>, route: &Value) -> Option<Finding> {
    let object = Object::from_live(route);
    let told = items(route, &["status", "parents"]).find_map(|parent| {
        let bad = items(parent, &["conditions"]).find(|it| {
            matches!(it.str_at(&["type"]), Some("Accepted" | "ResolvedRefs"))
                && it.str_at(&["status"]) == Some("False")
        })?;
        Some((parent, bad))
    });
    if let Some((parent, bad)) = told {
        let name = bad.str_at(&["type"]).unwrap_or_default();
        let gateway = parent.str_at(&["parentRef", "name"]).unwrap_or_default();
        let namespace = parent.str_at(&["parentRef", "namespace"]).unwrap_or(route.namespace());
        // The route is fine where it only waits for a listener of the gateway.
        let reason = bad.str_at(&["reason"]).unwrap_or_default();
        let is_of_listener = reason.contains("Ready") || reason == "InvalidListener";
        let below = is_of_listener.then(|| Object::new("Gateway", namespace, gateway));
        // Why the listener is not ready is told by its gateway.
        let is_unseen = below.iter().any(|gateway| look.cluster.live(gateway).is_none());
        let finding = |finding: Finding| {
            let finding = if is_unseen { finding.not_known() } else { finding };
            below.iter().cloned().fold(finding, Finding::below)
        };
        return Some(finding(
            Finding::new(
                Cause::EdgeRouteRefused,
                object.clone(),
                0.93,
                format!("the gateway {gateway} refuses {object}: {}", condition_text(bad)),
            )
            .field("spec.parentRefs")
            .evidence(format!("{object}, condition {name}"), condition_text(bad))
            .remedy(
                "Correct what the condition names: listener, host name, namespace, ReferenceGrant, backend.",
                &[format!(
                    "kubectl -n {} describe {} {}",
                    object.namespace,
                    object.kind.to_lowercase(),
                    object.name
                )],
            ),
        ));
    }
    let has_parents = items(route, &["status", "parents"]).next().is_some();
    let absent = items(route, &["spec", "parentRefs"]).find(|parent| {
        let kind = parent.str_at(&["kind"]).unwrap_or("Gateway");
        kind == "Gateway"
            && look.cluster.has_kind("Gateway")
            && look
                .cluster
                .get(
                    "Gateway",
                    parent.str_at(&["namespace"]).unwrap_or(route.namespace()),
                    parent.str_at(&["name"]).unwrap_or_default(),
                )
                .is_none()
    });
    absent.filter(|_| !has_parents && look.cluster.age(route) > 120).map(|parent| {
        let name = parent.str_at(&["name"]).unwrap_or_default();
        Finding::new(
            Cause::EdgeRouteRefused,
            object.clone(),
            0.85,
            format!("{object} names the gateway {name}, which does not exist"),
        )
        .field("spec.parentRefs")
        .remedy("Correct parentRefs.", &[])
    })
}

fn gateway_fault(look: &Look<'_>, gateway: &Value) -> Option<Finding> {
    let object = Object::from_live(gateway);
    for listener in items(gateway, &["status", "listeners"]) {
        let bad = items(listener, &["conditions"]).find(|it| {
            it.str_at(&["type"]) == Some("ResolvedRefs") && it.str_at(&["status"]) == Some("False")
        });
        let Some(bad) = bad.filter(|it| {
            let reason = it.str_at(&["reason"]).unwrap_or_default();
            reason.contains("Certificate") || reason == "RefNotPermitted"
        }) else {
            continue;
        };
        let name = listener.str_at(&["name"]).unwrap_or_default();
        let spec = items(gateway, &["spec", "listeners"]).find(|it| it.str_at(&["name"]) == Some(name));
        let secret =
            spec.into_iter().flat_map(|it| items(it, &["tls", "certificateRefs"])).next().map(|it| {
                Object::new(
                    "Secret",
                    it.str_at(&["namespace"]).unwrap_or(gateway.namespace()),
                    it.str_at(&["name"]).unwrap_or_default(),
                )
            });
        let at =
            secret.clone().filter(|it| look.cluster.live(it).is_none()).unwrap_or_else(|| object.clone());
        let finding = Finding::new(
            Cause::EdgeTlsSecret,
            at.clone(),
            0.92,
            format!("the certificate of listener {name} of {object} cannot be used: {}", condition_text(bad)),
        )
        .evidence(format!("{object}, listener {name}"), condition_text(bad))
        .suffers(object, "has a listener without a certificate")
        .remedy("Make the Secret, or grant the reference to it.", &[]);
        return Some(
            secret
                .into_iter()
                .flat_map(|it| crate::dependencies::upstream(look.cluster, &it))
                .fold(finding, Finding::below),
        );
    }
    let name = gateway.str_at(&["spec", "gatewayClassName"])?;
    let is_absent =
        look.cluster.has_kind("GatewayClass") && look.cluster.get("GatewayClass", "", name).is_none();
    let accepted = conditions(gateway)
        .any(|it| it.str_at(&["type"]) == Some("Programmed") && it.str_at(&["status"]) == Some("True"));
    if accepted {
        return None;
    }
    if is_absent {
        return Some(
            Finding::new(
                Cause::EdgeClass,
                object.clone(),
                0.9,
                format!("no controller serves {object}: no GatewayClass {name} exists"),
            )
            .field("spec.gatewayClassName")
            .remedy("Use a class that exists.", &["kubectl get gatewayclass".to_owned()]),
        );
    }
    unserved_class(look, gateway, name)
}

/// A class of Gateways that its controller refuses, as long as a Gateway needs it.
fn refused_class(look: &Look<'_>, class: &Value) -> Option<Finding> {
    let told = condition(class, "Accepted").filter(|it| it.str_at(&["status"]) == Some("False"))?;
    let works = |gateway: &Value| crate::cluster::has_condition(gateway, "Programmed", "True");
    let users = look.cluster.all("Gateway").iter().filter(|gateway| {
        gateway.str_at(&["spec", "gatewayClassName"]) == Some(class.name()) && !works(gateway)
    });
    let users: Vec<Object> = users.map(|gateway| Object::from_live(gateway)).collect();
    users.first()?;
    let object = Object::from_live(class);
    let names_parameters = class.at(&["spec", "parametersRef"]).is_some();
    let (cause, field) = if names_parameters && told.str_at(&["reason"]) == Some("InvalidParameters") {
        (Cause::OperatorReference, "spec.parametersRef")
    } else {
        (Cause::EdgeClass, "spec.controllerName")
    };
    let summary = format!("{object} is refused by its controller: {}", condition_text(told));
    let finding = Finding::new(cause, object.clone(), 0.92, summary)
        .field(field)
        .since(time(told, &["lastTransitionTime"]))
        .evidence(format!("{object}, condition Accepted"), condition_text(told))
        .remedy("Make what the class names, or correct it.", &[object.kubectl("describe")]);
    Some(users.into_iter().fold(finding, |finding, user| finding.suffers(user, "its class is refused")))
}

/// A Gateway of a class that no controller has looked at: the controller is not there.
fn unserved_class(look: &Look<'_>, gateway: &Value, name: &str) -> Option<Finding> {
    const PATIENCE: i64 = 600;
    let is_open = |live: &Value| {
        let told = condition(live, "Accepted").and_then(|it| it.str_at(&["status"]));
        matches!(told, None | Some("Unknown"))
    };
    let class = look.cluster.get("GatewayClass", "", name)?;
    if !is_open(class) || !is_open(gateway) || look.cluster.age(gateway) < PATIENCE {
        return None;
    }
    let (object, class_object) = (Object::from_live(gateway), Object::from_live(class));
    let controller = class.str_at(&["spec", "controllerName"]).unwrap_or_default();
    let words = crate::causes::operator::words(controller);
    let summary = format!("no controller serves {object}: {controller} has never looked at {class_object}");
    let finding = Finding::new(Cause::EdgeClass, object.clone(), 0.85, summary)
        .field("spec.gatewayClassName")
        .evidence(
            class_object.to_string(),
            condition(class, "Accepted").map_or("no status".to_owned(), condition_text),
        )
        .remedy(
            format!("Install the controller {controller}, or use a class that is accepted."),
            &["kubectl get gatewayclass".to_owned()],
        );
    // Without the workloads, a red pod that bears its name may be the controller.
    let named = |ill: &crate::search_context::Ill<'_>| {
        words.iter().any(|word| ill.workload.namespace.contains(word) || ill.workload.name.contains(word))
    };
    let is_unseen = !look.cluster.has_kind("Deployment") && look.ill.iter().any(named);
    let finding = if is_unseen { finding.not_known() } else { finding };
    Some(crate::causes::operator::by_words(look, &words).into_iter().fold(finding, Finding::below))
}

/// Names of workloads that serve Ingresses and Gateways.
const CONTROLLERS: &[&str] = &[
    "ingress-nginx-controller",
    "nginx-ingress",
    "traefik",
    "haproxy-ingress",
    "kong",
    "contour",
    "envoy-gateway",
    "istio-ingressgateway",
    "nginx-ingress-controller",
    "ingress-controller",
];

/// An ingress controller that is scaled to zero while routes need it.
fn controllers(look: &Look<'_>) -> Vec<Finding> {
    let mut found = down_controllers(look);
    found.extend(refused_configuration(look));
    found
}

/// The configuration that an ingress controller makes and that its server refuses: what is new is not served.
fn refused_configuration(look: &Look<'_>) -> Option<Finding> {
    let is_controller = |pod: &&&Value| CONTROLLERS.iter().any(|name| pod.name().contains(name));
    let (pod, source, line) =
        look.cluster.all("Pod").iter().filter(is_controller).find_map(|pod| refusal_of(look, pod))?;
    let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).filter(|word| word.len() > 2).collect();
    let names_it = |text: &str| quoted.iter().any(|word| text.contains(word));
    let key_of = |value: Option<&Value>| -> Option<String> {
        let texts = value.and_then(Value::as_object).into_iter().flatten();
        texts.filter(|(_, text)| text.as_str().is_some_and(names_it)).map(|(key, _)| key.clone()).next()
    };
    let maps = look.cluster.all("ConfigMap").iter().filter(|it| it.namespace() == pod.namespace());
    let in_map = maps.filter_map(|it| Some((*it, format!("data.{}", key_of(it.get("data"))?))));
    let routes = look.cluster.all("Ingress").iter();
    let in_route = routes.filter_map(|it| {
        Some((*it, format!("metadata.annotations.{}", key_of(it.at(&["metadata", "annotations"]))?)))
    });
    let written = in_route.chain(in_map).next();
    let workload = look.cluster.workload(pod);
    let object = written.as_ref().map_or_else(|| workload.clone(), |(live, _)| Object::from_live(live));
    let summary =
        format!("{workload} cannot load its configuration: routes that changed since then are not served");
    let finding =
        Finding::new(Cause::ConfigWrongValue, object.clone(), 0.85, summary).evidence(source, line).remedy(
            format!("Correct what the line names in {object}."),
            &[format!("kubectl -n {} logs {} --tail=50", pod.namespace(), pod.name())],
        );
    Some(match written {
        Some((_, field)) => finding.field(field).suffers(workload, "cannot load its configuration"),
        None => finding,
    })
}

/// The last words by which a controller's server refused its configuration, if none was loaded since.
fn refusal_of<'a>(look: &Look<'a>, pod: &'a Value) -> Option<(&'a Value, String, String)> {
    for log in look.cluster.logs(pod.namespace(), pod.name()) {
        let lines: Vec<&str> = log.text.lines().collect();
        let tells = |line: &&str| line.contains("[emerg]");
        let loaded = lines.iter().rposition(|line| line.contains("successfully reloaded"));
        let failed = lines.iter().rposition(|line| line.contains("reloading"));
        let Some(line) = lines.iter().rposition(tells) else { continue };
        if failed.is_some() && loaded.is_none_or(|loaded| loaded < line) {
            return Some((pod, log.source(), lines[line].to_owned()));
        }
    }
    let object = Object::from_live(pod);
    let event = look.cluster.events(&object).rfind(|event| {
        let age = event.last.and_then(|last| look.cluster.seconds_since(last));
        event.is_warning() && event.reason == "RELOAD" && age.is_none_or(|age| age < 3600)
    })?;
    let line = event.message.lines().find(|line| line.contains("[emerg]"))?;
    Some((pod, format!("Event of {object}"), line.to_owned()))
}

/// Controllers of routes that do not run.
fn down_controllers(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let routes: Vec<Object> = ["Ingress", "HTTPRoute"]
        .iter()
        .flat_map(|kind| look.cluster.all(kind).iter())
        .map(|it| Object::from_live(it))
        .collect();
    if routes.is_empty() {
        return found;
    }
    for live in ["Deployment", "DaemonSet"]
        .iter()
        .flat_map(|kind| look.cluster.all(kind).iter())
        .filter(|it| CONTROLLERS.iter().any(|name| it.name().contains(name)))
    {
        let object = Object::from_live(live);
        let is_zero = pods::replicas(live) == 0 && live.kind() == "Deployment";
        let is_empty =
            live.kind() == "DaemonSet" && live.int_at(&["status", "desiredNumberScheduled"]) == Some(0);
        let other =
            ["Deployment", "DaemonSet"].iter().flat_map(|kind| look.cluster.all(kind).iter()).any(|it| {
                it.name() != live.name()
                    && CONTROLLERS.iter().any(|name| it.name().contains(name))
                    && pods::shortage(it).is_none()
                    && pods::replicas(it) > 0
            });
        let is_down = look.is_red(&object) && live.int_at(&["status", "readyReplicas"]).unwrap_or(0) == 0;
        if (!is_zero && !is_empty && !is_down) || other {
            continue;
        }
        let mut finding = Finding::new(
            Cause::EdgeControllerDown,
            object.clone(),
            if is_down { 0.8 } else { 0.9 },
            format!("{object}, which serves all routes, does not run"),
        )
        .evidence(
            object.to_string(),
            format!(
                "spec.replicas: {}, ready: {}",
                pods::replicas(live),
                live.int_at(&["status", "readyReplicas"]).unwrap_or(0)
            ),
        )
        .remedy("Bring the controller back.", &[format!("kubectl -n {} get pods", object.namespace)]);
        if is_down {
            // Its pods tell why; while they do not, only the absence is known.
            finding = finding.not_known();
            finding = pods::of_workload(look.cluster, &object)
                .into_iter()
                .fold(finding, |finding, pod| finding.below(Object::from_live(pod)));
        }
        found.push(
            routes.iter().fold(finding, |finding, route| finding.suffers(route.clone(), "is not served")),
        );
    }
    found
}
