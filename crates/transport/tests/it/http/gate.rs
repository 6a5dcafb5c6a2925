//! Who may ask, and from where.

use axum::{body::Body, http::Method};
use taffrail_runs::Until;

use super::ground::{Ground, Serving, TOKEN};

const OPEN: [&str; 6] = ["/healthz", "/readyz", "/.well-known/jwks.json", "/", "/app.js", "/app.css"];
const CLOSED: [&str; 7] = [
    "/api/v1/runs",
    "/api/v1/runs/x",
    "/api/v1/runs/x/events",
    "/metrics",
    "/openapi.json",
    "/nope",
    "/api/v1/threads/t/stream",
];

async fn anonymous(ground: &Ground, method: Method, path: &str) -> super::ground::Answer {
    ground.send(method, path, &[("authorization", "")], Body::empty()).await
}

#[tokio::test]
async fn without_a_token_there_is_nothing_to_learn() {
    let ground = Ground::new();
    for path in CLOSED {
        let answer = anonymous(&ground, Method::GET, path).await;
        answer.problem(401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    for path in ["/mcp", "/api/v1/threads/t/runs", "/api/v1/runs/x/events"] {
        anonymous(&ground, Method::POST, path).await.problem(401, "unauthorized");
    }
    for wrong in ["Bearer wrong", "Basic Zm9v", "Bearer"] {
        let answer = ground.send(Method::GET, "/api/v1/runs", &[("authorization", wrong)], Body::empty()).await;
        answer.problem(401, "unauthorized");
    }
    for path in OPEN {
        assert_eq!(anonymous(&ground, Method::GET, path).await.status, 200, "{path}");
    }
    assert_eq!(ground.get("/api/v1/runs").await.status, 200);
    // A token in the URL would stand in every log on the way.
    let in_url = anonymous(&ground, Method::GET, &format!("/api/v1/runs?token={TOKEN}")).await;
    in_url.problem(401, "unauthorized");
}

#[tokio::test]
async fn without_auth_everybody_on_this_machine_may_ask() {
    let ground = Ground::with(|config| config.token = None);
    assert_eq!(anonymous(&ground, Method::GET, "/api/v1/runs").await.status, 200);
    // Pages of other sites still may not.
    let headers = [("authorization", ""), ("origin", "https://evil.example")];
    ground.send(Method::GET, "/api/v1/runs", &headers, Body::empty()).await.problem(403, "unknown-origin");
    let headers = [("authorization", ""), ("host", "evil.example")];
    ground.send(Method::GET, "/api/v1/runs", &headers, Body::empty()).await.problem(403, "unknown-host");
}

#[tokio::test]
async fn other_hosts_and_origins_are_turned_away_everywhere() {
    let ground = Ground::with(|config| config.allowed_origins.push("https://console.example".parse().unwrap()));
    for path in OPEN.into_iter().chain(CLOSED) {
        let host = ground.send(Method::GET, path, &[("host", "evil.example:7433")], Body::empty()).await;
        assert!(host.problem(403, "unknown-host").contains("evil.example"), "{path}");
        for origin in ["https://evil.example", "null", "http://localhost:1"] {
            let answer = ground.send(Method::GET, path, &[("origin", origin)], Body::empty()).await;
            answer.problem(403, "unknown-origin");
        }
    }
    for origin in ["http://localhost:7433", "https://console.example"] {
        let answer = ground.send(Method::GET, "/api/v1/runs", &[("origin", origin)], Body::empty()).await;
        assert_eq!(answer.status, 200, "{origin}");
    }
}

#[tokio::test]
async fn a_page_that_is_allowed_to_ask_may_read_the_answers() {
    let ground = Ground::with(|config| config.allowed_origins.push("https://console.example".parse().unwrap()));
    let page = ("origin", "https://console.example");
    let answer = ground.send(Method::GET, "/api/v1/runs", &[page], Body::empty()).await;
    assert_eq!(answer.header("access-control-allow-origin"), "https://console.example");
    assert_eq!(answer.header("vary"), "origin");
    assert!(!answer.headers.contains_key("access-control-allow-credentials"));
    // Also when it is a mistake: the script has to see which.
    let refused = ground.send(Method::GET, "/api/v1/runs", &[page, ("authorization", "")], Body::empty()).await;
    refused.problem(401, "unauthorized");
    assert_eq!(refused.header("access-control-allow-origin"), "https://console.example");
    let asks = [page, ("authorization", ""), ("access-control-request-method", "POST")];
    let asked = ground.send(Method::OPTIONS, "/api/v1/threads/t/runs", &asks, Body::empty()).await;
    assert_eq!((asked.status.as_u16(), asked.header("access-control-allow-methods")), (204, "GET, POST"));
    for name in ["authorization", "content-type", "last-event-id", "mcp-protocol-version"] {
        assert!(asked.header("access-control-allow-headers").contains(name), "{name}");
    }
    // Our own pages need none of that, and others get none.
    let own = ground.send(Method::GET, "/api/v1/runs", &[("origin", "http://localhost:7433")], Body::empty()).await;
    assert!(!own.headers.contains_key("access-control-allow-origin"));
    let evil = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    let other = ground.send(Method::OPTIONS, "/api/v1/threads/t/runs", &evil, Body::empty()).await;
    other.problem(403, "unknown-origin");
    assert!(!other.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn the_printed_url_signs_in_once() {
    let ground = Ground::new();
    let path = ground.http.sign_in_path().unwrap();
    let looked = anonymous(&ground, Method::HEAD, &path).await;
    assert_eq!(looked.status, 204, "a look does not use it up");
    let signed = anonymous(&ground, Method::GET, &path).await;
    assert_eq!((signed.status.as_u16(), signed.header("location")), (303, "/"));
    let cookie = signed.header("set-cookie").to_owned();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains(TOKEN));
    let again = anonymous(&ground, Method::GET, &path).await;
    again.problem(401, "unauthorized");
    assert!(!again.headers.contains_key("set-cookie"));
    anonymous(&ground, Method::GET, "/login?code=").await.problem(401, "unauthorized");
    anonymous(&ground, Method::GET, "/login").await.problem(401, "unauthorized");

    let cookie = cookie.split(';').next().unwrap();
    let read = ground.send(Method::GET, "/api/v1/runs", &[("cookie", cookie)], Body::empty()).await;
    assert_eq!(read.status, 200);
    // Another process with the same token takes it, one with another does not.
    let same = Ground::new();
    assert_eq!(same.send(Method::GET, "/api/v1/runs", &[("cookie", cookie)], Body::empty()).await.status, 200);
    let other = Ground::with(|config| {
        config.token = Some(taffrail_transport::http::OperatorToken::generate());
    });
    let refused = other.send(Method::GET, "/api/v1/runs", &[("cookie", cookie)], Body::empty()).await;
    refused.problem(401, "unauthorized");
}

#[tokio::test]
async fn the_token_signs_in_and_out() {
    let ground = Ground::with(|config| config.public_url = Some("https://log.example".parse().unwrap()));
    let headers = [("authorization", ""), ("content-type", "application/json")];
    let wrong = ground.send(Method::POST, "/login", &headers, Body::from(r#"{"token":"wrong"}"#)).await;
    wrong.problem(401, "unauthorized");
    let body = format!(r#"{{"token":"{TOKEN}"}}"#);
    let right = ground.send(Method::POST, "/login", &headers, Body::from(body)).await;
    assert_eq!(right.status, 204);
    assert!(right.header("set-cookie").ends_with("; Secure"), "what is public is https");
    let out = ground.send(Method::POST, "/logout", &headers, Body::empty()).await;
    assert!(out.header("set-cookie").contains("=; Path=/; Max-Age=0"), "{out:?}");
}

#[tokio::test]
async fn a_cookie_changes_things_from_our_own_pages_only() {
    let ground = Ground::new();
    let signed = anonymous(&ground, Method::GET, &ground.http.sign_in_path().unwrap()).await;
    let cookie = signed.header("set-cookie").split(';').next().unwrap().to_owned();
    let start = |origin: &'static str, site: &'static str| {
        let headers = [
            ("cookie", cookie.as_str()),
            ("content-type", "application/json"),
            ("origin", origin),
            ("sec-fetch-site", site),
        ];
        let body = Body::from(r#"{"playbook":"lines"}"#);
        let ground = &ground;
        async move { ground.send(Method::POST, "/api/v1/threads/t/runs", &headers, body).await }
    };
    start("", "").await.problem(403, "unknown-origin");
    start("", "none").await.problem(403, "unknown-origin");
    start("", "same-site").await.problem(403, "unknown-origin");
    start("", "cross-site").await.problem(403, "unknown-origin");
    start("http://evil.example", "cross-site").await.problem(403, "unknown-origin");
    let started = start("http://localhost:7433", "same-origin").await;
    assert_eq!(started.status, 202, "{started:?}");
    assert_eq!(start("", "same-origin").await.status, 202);
    let run = taffrail_mcp_core::RunId::new(started.json()["run"].as_str().unwrap()).unwrap();
    ground.wait(&run, Until::Ended).await;
}

#[tokio::test]
async fn the_address_that_was_connected_to_is_a_name_of_ours() {
    let serving = Serving::with(|_| {});
    let ask = |host: &str| format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\n\r\n");
    for host in [serving.addr.to_string(), "127.0.0.1".into(), "localhost:80".into()] {
        assert!(serving.ask(&ask(&host)).await.starts_with("HTTP/1.1 200"), "{host}");
    }
    for host in ["127.0.0.2", "192.0.2.1", "evil.example"] {
        assert!(serving.ask(&ask(host)).await.starts_with("HTTP/1.1 403"), "{host}");
    }
    assert!(serving.ask("GET /healthz HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.0 403"));
    assert!(serving.sign_in.starts_with(&format!("http://{}/login?code=", serving.addr)));
}
