//! What is no message, or no request of this server, and how it is answered.

use serde_json::json;

use crate::client::Client;

#[test]
fn what_comes_before_the_first_request_is_dropped() {
    let mut client = Client::raw();
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.write(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    client.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(client.line(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    client.write(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    assert_eq!(client.line(), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
}

#[test]
fn rubbish_is_answered_in_its_place_and_harms_nothing() {
    for mut client in [Client::raw(), Client::legacy(), Client::modern()] {
        client.write("hello");
        client.write("");
        client.write("[]");
        client.write(r#"{"jsonrpc":"2.0","id":"x","method":7}"#);
        client.write(r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":7}"#);
        insta::allow_duplicates! {
            insta::assert_snapshot!(client.line(), @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected value at line 1 column 1; send one JSON-RPC message a line"}}"#);
            insta::assert_snapshot!(client.line(), @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: batches are not supported; send one message a line"}}"#);
            insta::assert_snapshot!(client.line(), @r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"Invalid request: `method` must be a string"}}"#);
        }
        let _about_params = client.line();
        client.assert_silent();
    }
}

#[test]
fn a_line_of_more_than_4_mib_is_refused_and_skipped() {
    let mut client = Client::legacy();
    let text = "x".repeat(5 << 20);
    client.write(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": text}}).to_string());
    insta::assert_snapshot!(client.line(), @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message may hold at most 4194304 bytes"}}"#);
    client.assert_silent();
}

#[test]
fn unknown_methods_tools_and_bad_parameters_have_their_own_codes() {
    for mut client in [Client::legacy(), Client::modern()] {
        let code = |client: &mut Client, method: &str, params| client.request(method, params)["error"]["code"].clone();
        assert_eq!(code(&mut client, "no/such", json!({})), -32601);
        assert_eq!(code(&mut client, "roots/list", json!({})), -32601);
        assert_eq!(code(&mut client, "tools/call", json!({"arguments": {}})), -32602);
        assert_eq!(code(&mut client, "tools/call", json!({"name": "run", "arguments": []})), -32602);
        assert_eq!(code(&mut client, "tools/call", json!({"name": "no_such"})), -32602);
    }
}

#[test]
fn a_panic_is_answered() {
    let mut client = Client::legacy();
    let answer = client.request("tools/call", json!({"name": "run", "arguments": {"playbook": "panic"}}));
    insta::assert_snapshot!(answer["error"], @r#"{"code":-32603,"message":"internal error in `run`; runs are not harmed, `list_runs` shows them"}"#);
    client.assert_silent();
}
