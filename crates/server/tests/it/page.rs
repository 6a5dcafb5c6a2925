//! The page that the server has for browsers, and what pages of others may do.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use taffrail_testutils::browser::{Browser, Page};
use tokio::time::sleep;

use crate::{deployed::Deployed, elsewhere::Producer, world::World};

fn texts(of: std::ops::Range<u64>) -> Vec<String> {
    of.map(|n| format!("line {n} <b>&amp;")).collect()
}

/// The lines of standard output that a page shows.
fn shown(page: &Page<'_>) -> Vec<String> {
    let lines = page.eval("[...document.querySelectorAll('#log .stdout')].map((line) => line.textContent)");
    serde_json::from_value(lines).unwrap()
}

#[track_caller]
fn until_shown(page: &Page<'_>, lines: usize) {
    page.until("the page shows them", &format!("document.querySelectorAll('#log .stdout').length >= {lines}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_a_run_live_across_restarts() {
    let world = World::new();
    let mut server = Deployed::start(&world, "server", &[]);
    let mut producer = Producer::start(server.client(), "a-job").await;
    producer.print(&texts(0..50)).await;
    let browser = Browser::start();
    let page = browser.page();
    assert_eq!(page.open(server.sign_in()), 200);
    assert_eq!(page.eval("location.pathname + location.search"), "/");
    assert_eq!(page.eval("document.cookie"), "", "scripts do not see the cookie");
    let row = page.until("the run is listed", "document.querySelector('#list tr')?.innerText");
    let row = row.as_str().unwrap();
    assert!(row.contains(producer.run.as_str()) && row.contains("a-job") && row.contains("running"), "{row}");

    page.eval("document.querySelector('#list button').click()");
    until_shown(&page, 50);
    server.terminate();
    server.begin();
    producer.print(&texts(50..100)).await;
    until_shown(&page, 100);
    server.kill();
    server.begin();
    producer.print(&texts(100..150)).await;
    producer.finish().await;
    let newline = |text: String| format!("{text}\n");
    page.until("the page shows the end", "document.querySelector('#log').lastElementChild.textContent === 'done\\n'");
    assert_eq!(shown(&page), texts(0..150).into_iter().map(newline).collect::<Vec<_>>());
    page.until("the list shows it, too", "document.querySelector('#list tr').innerText.includes('done')");
    // A stream that was not closed would be opened again within this time.
    sleep(Duration::from_secs(5)).await;
    let streams = server.access().into_iter().filter(|access| access.route.ends_with("/stream"));
    let statuses: Vec<_> = streams.map(|access| access.status).collect();
    assert_eq!(statuses, [200, 200], "the one that was killed is not told; after the end the page asks no more");
}

#[test]
fn signing_in_and_out() {
    let world = World::new();
    let server = Deployed::start(&world, "server", &[]);
    let browser = Browser::start();
    let [first, other] = [browser.page(), browser.page()];
    let sees = "fetch('api/v1/runs').then((answer) => answer.status)";
    let is_signed_out = "!document.querySelector('#sign-in').hidden && document.querySelector('#runs').hidden";

    assert_eq!(first.open(server.sign_in()), 200);
    assert_eq!(first.eval(sees), 200);
    // The URL works once.
    assert_eq!(other.open(server.sign_in()), 401);
    assert_eq!(other.open(&server.url()), 200);
    other.until("it asks for the token", is_signed_out);
    assert_eq!(other.eval(sees), 401);
    for (token, answer) in [("0123456789abcdef0123456789abcdef", "this is not"), (&server.token(), "0 runs")] {
        other.eval("document.querySelector('#token').focus()");
        other.type_text(token);
        other.eval("document.querySelector('#sign-in button').click()");
        other.until(answer, &format!("document.querySelector('#state').textContent.startsWith('{answer}')"));
    }
    assert_eq!(other.eval(sees), 200);
    assert_eq!(other.eval(is_signed_out), false);
    other.eval("document.querySelector('#out').click()");
    other.until("it is signed out", is_signed_out);
    assert_eq!(other.eval(sees), 401);
    assert_eq!(first.eval(sees), 200, "another browser is not");
}

/// An empty page of another server, on a port of its own.
fn other_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            // A head ends with an empty line. Browsers open connections in advance, and may close them.
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            if head.map_while(Result::ok).any(|line| line.is_empty()) {
                let page =
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(page.as_bytes());
            }
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_servers_read_nothing_and_change_nothing() {
    let world = World::new();
    let server = Deployed::start(&world, "server", &[]);
    let producer = Producer::start(server.client(), "a-job").await;
    let run = format!("{}/api/v1/runs/{}", server.url(), producer.run);
    let browser = Browser::start();
    let page = browser.page();
    page.open(server.sign_in());
    // Cookies know no ports: for the browser this page is of the same site, and it sends the cookie.
    page.open(&other_page());
    let tried = page.eval(&format!(
        r#"(async () => {{
            const said = [];
            const ask = async (url, more) => {{
                const options = {{ credentials: "include", ...more }};
                said.push(await fetch(url, options).then((answer) => answer.type, (error) => error.name));
            }};
            await ask("{run}");
            await ask("{run}/cancel", {{ method: "POST", body: "{{}}", headers: {{ "content-type": "application/json" }} }});
            await ask("{run}/cancel", {{ method: "POST", body: "{{}}", mode: "no-cors" }});
            const source = new EventSource("{run}/stream", {{ withCredentials: true }});
            source.onmessage = () => said.push("told");
            await new Promise((done) => {{ source.onerror = done; }});
            said.push(source.readyState === EventSource.CLOSED);
            return said;
        }})()"#
    ));
    // An opaque answer is one that the page cannot look into.
    assert_eq!(tried, json!(["TypeError", "TypeError", "opaque", true]));
    let answers: Vec<_> = server.access().into_iter().map(|access| (access.method, access.status)).collect();
    let refused = answers.iter().filter(|(_, status)| *status == 403).count();
    assert_eq!(refused, 4, "{answers:?}");
    let snapshot = server.client().snapshot(&producer.run).await.unwrap();
    assert_eq!(serde_json::to_value(snapshot.status).unwrap(), Value::from("running"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_allowed_origins_ask_with_the_token() {
    let world = World::new();
    let other = other_page();
    let server = Deployed::start(&world, "server", &["--allowed-origin", other.trim_end_matches('/')]);
    let mut producer = Producer::start(server.client(), "a-job").await;
    producer.print(&texts(0..3)).await;
    let (run, token) = (format!("{}/api/v1/runs/{}", server.url(), producer.run), server.token());
    let browser = Browser::start();
    let page = browser.page();
    page.open(server.sign_in());
    page.open(&other);
    let tried = page.eval(&format!(
        r#"(async () => {{
            const headers = {{ authorization: "Bearer {token}" }};
            const snapshot = await (await fetch("{run}", {{ headers }})).json();
            const stream = (await fetch("{run}/stream?after=3", {{ headers }})).body.getReader();
            let told = "";
            while (!told.includes("data: ")) told += new TextDecoder().decode((await stream.read()).value);
            await stream.cancel();
            const events = {{ "content-type": "application/x-ndjson", "taffrail-producer": "page:1", ...headers }};
            const body = '{{"type":"message","role":"assistant","text":"hello"}}\n';
            const taken = await fetch("{run}/events", {{ method: "POST", body, headers: events }});
            const with_cookie = await fetch("{run}", {{ credentials: "include" }}).then(() => "read", (error) => error.name);
            return [snapshot.status, told.slice(0, told.indexOf("data: ")), await taken.json(), with_cookie];
        }})()"#
    ));
    // The cookie of the signed in browser is not for them.
    assert_eq!(
        tried,
        json!(["running", "retry: 2000\n\nid: 4\n", {"first": 5, "last": 5, "stored": 1, "known": 0}, "TypeError"])
    );
}
