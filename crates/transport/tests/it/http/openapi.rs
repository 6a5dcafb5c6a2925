//! The OpenAPI document is that of the server: nothing is missing, nothing is made up, and answers are what it says.

use std::collections::BTreeSet;

use axum::{body::Body, http::Method};
use serde_json::{Value, json};

use super::ground::Ground;

const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

async fn document(ground: &Ground) -> Value {
    ground.get("/openapi.json").await.json()
}

/// Method and path of every operation.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let mut all = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            all.push((method.as_str(), path.as_str(), operation));
        }
    }
    all
}

/// A schema of the document by itself: its references point into the document.
fn validator(document: &Value, name: &str) -> jsonschema::Validator {
    let mut schema = document.clone();
    schema["$ref"] = json!(format!("#/components/schemas/{name}"));
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn check(document: &Value, name: &str, answer: &Value) {
    let errors: Vec<_> = validator(document, name).iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{name}: {errors:?} in {answer}");
}

#[tokio::test]
async fn every_route_is_in_it_and_nothing_else() {
    let ground = Ground::new();
    let document = document(&ground).await;
    let told: BTreeSet<_> =
        operations(&document).into_iter().map(|(method, path, _)| (path.to_owned(), method.to_uppercase())).collect();
    let mut there = BTreeSet::new();
    for path in ground.http.routes() {
        let asked = path.replace(['{', '}'], "");
        // A method that no route has: the answer says which it has.
        let answer = ground.send(Method::from_bytes(b"BREW").unwrap(), &asked, &[], Body::empty()).await;
        answer.problem(405, "method-not-allowed");
        let allowed = answer.header("allow").split(',').map(str::trim).filter(|method| *method != "HEAD");
        there.extend(allowed.map(|method| ((*path).to_owned(), method.to_owned())));
    }
    assert_eq!(told, there);
}

#[tokio::test]
async fn it_is_valid_openapi_3_1() {
    let ground = Ground::new();
    let document = document(&ground).await;
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        assert!(METHODS.contains(&method), "{method} {path}");
        assert!(path.starts_with('/'));
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} is there twice");
        let in_path: BTreeSet<_> =
            path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap().to_owned()).collect();
        let none = Vec::new();
        let parameters = operation["parameters"].as_array().unwrap_or(&none);
        let mut names = BTreeSet::new();
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap();
            assert!(names.insert((name, parameter["in"].as_str().unwrap())), "{id}: {name} twice");
            assert!(parameter["schema"].is_object(), "{id}: {name}");
            assert_eq!(parameter["in"] == "path", parameter["required"] == true, "{id}: {name}");
        }
        let told = parameters.iter().filter(|parameter| parameter["in"] == "path");
        let told: BTreeSet<_> = told.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(told, in_path, "{id}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{id}");
        for (status, response) in responses {
            assert!(status.parse::<u16>().is_ok_and(|status| (200..600).contains(&status)), "{id}: {status}");
            assert!(response["description"].is_string(), "{id}: {status}");
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        // Compiles, with every reference in it.
        validator(&document, name);
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"").skip(1) {
        let target = reference.split('"').next().unwrap().strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(target), "{target}");
    }
}

#[tokio::test]
async fn answers_are_what_it_says() {
    let ground = Ground::new();
    let document = document(&ground).await;
    let started = ground.post("/api/v1/threads/t/runs", json!({"playbook": "gate"})).await.json();
    check(&document, "Started", &started);
    let run = taffrail_mcp_core::RunId::new(started["run"].as_str().unwrap()).unwrap();
    ground.wait(&run, taffrail_runs::Until::Settled).await;
    check(&document, "Snapshot", &ground.get(&format!("/api/v1/runs/{run}")).await.json());
    check(&document, "RunList", &ground.get("/api/v1/runs?limit=1").await.json());
    let page = ground.get(&format!("/api/v1/runs/{run}/events")).await.json();
    check(&document, "Page", &page);
    for record in page["records"].as_array().unwrap() {
        check(&document, "Record", record);
    }
    check(&document, "Health", &ground.get("/healthz").await.json());
    check(&document, "Health", &ground.get("/readyz").await.json());
    check(&document, "Problem", &ground.get("/nope").await.json());
    check(&document, "Problem", &ground.get(&format!("/api/v1/runs/{run}/events?after=9999")).await.json());
    // And a schema that takes everything would prove nothing.
    for name in ["Started", "Snapshot", "RunList", "Page", "Record", "Problem", "Health"] {
        assert!(!validator(&document, name).is_valid(&json!({"other": 1})), "{name}");
    }
}

#[tokio::test]
async fn numbers_are_taken_up_to_the_limits_that_it_tells() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let document = document(&ground).await;
    let mut tried = 0;
    for (method, path, operation) in operations(&document) {
        let none = Vec::new();
        for parameter in operation["parameters"].as_array().unwrap_or(&none) {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let (Some(least), Some(most)) = (schema["minimum"].as_u64(), schema["maximum"].as_u64()) else { continue };
            assert_eq!(method, "get");
            let path = path.replace("{run}", run.as_str());
            for right in [least, most] {
                let answer = ground.get(&format!("{path}?{name}={right}")).await;
                assert_eq!(answer.status, 200, "{path} {name} {right}: {answer:?}");
            }
            let wrong = ground.get(&format!("{path}?{name}={}", most + 1)).await;
            assert!(wrong.problem(400, "bad-parameter").contains(&format!("from {least} to {most}")));
            tried += 1;
        }
    }
    assert_eq!(tried, 6);
}
