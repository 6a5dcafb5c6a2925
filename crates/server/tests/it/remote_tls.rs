//! A server behind TLS, below a path.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, mpsc},
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use crate::{
    proc::Proc,
    world::{World, here},
};

/// Answers each connection with an empty list of runs, and tells the first line of what was asked.
fn serve() -> (u16, mpsc::Receiver<String>) {
    let certificate = CertificateDer::from_pem_file(here("tests/tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(here("tests/tls/key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
            let lines: Vec<_> =
                stream.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let Some(first) = lines.first() else { continue };
            let _ = sender.send(first.clone());
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"runs\":[]}";
            let _ = stream.get_mut().write_all(answer.as_bytes());
            stream.get_mut().conn.send_close_notify();
            let _ = stream.get_mut().flush();
        }
    });
    (port, asked)
}

#[test]
fn a_server_behind_a_proxy_with_tls_and_a_path_is_asked_there() {
    let world = World::new();
    let (port, asked) = serve();
    let url = format!("https://localhost:{port}/ci/taffrail/");
    let runs = |trusted: bool, url: &str| {
        let mut command = world.command(&["runs", "--json", "--url", url, "--token", "x"]);
        if trusted {
            command.env("SSL_CERT_FILE", here("tests/tls/cert.pem"));
        }
        Proc::start(command).end()
    };
    let done = runs(true, &url);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{}", done.stderr);
    assert_eq!(asked.recv().unwrap(), "GET /ci/taffrail/api/v1/runs?limit=20 HTTP/1.1");
    // Not a name of the certificate, and not a certificate that the system trusts: nothing is asked.
    for (trusted, url) in [(true, url.replace("localhost", "127.0.0.1")), (false, url)] {
        let done = runs(trusted, &url);
        assert!(done.code == Some(1) && done.stderr.contains("certificate"), "{}", done.stderr);
    }
    assert!(asked.try_recv().is_err());
}
