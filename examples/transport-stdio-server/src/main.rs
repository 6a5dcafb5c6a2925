//! An MCP server on standard input and output.
//!
//! ```sh
//! cargo run -q -p transport-stdio-server < examples/transport-stdio-server/input
//! ```
//!
//! The eight tools, on the runs service in this process. A service of your own implements
//! `taffrail_transport::mcp::backend::Backend` in its place. The server ends with its input; runs would not, so closing
//! the service is the caller's business.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use taffrail_relay::{MemoryStore, Relay};
use taffrail_runs::{Config, Layout, Service};
use taffrail_transport::{McpConfig, ServiceBackend, serve_stdio};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let service = service(folder.path())?;
    // Whoever starts a stdio server shares its disk, so paths mean something to both.
    let config = McpConfig { shared_fs: true, ..McpConfig::default() };
    let served = serve_stdio(Arc::new(ServiceBackend::new(service.clone(), true, "example")), &config).await;
    service.close().await;
    Ok(served?)
}

fn service(folder: &Path) -> Result<Service> {
    let relay = Relay::start(Arc::new(MemoryStore::new()), Default::default())?;
    let layout = Layout::new(folder.join("data"));
    Ok(Service::open(relay, Config::new(layout, folder.join("playbooks"), folder.to_owned()))?)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::Mutex,
    };

    use taffrail_transport::{serve, stdio::StdioTransport};

    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_input_is_answered_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let backend = ServiceBackend::new(service(folder.path()).unwrap(), false, "test");
        let output = Output::default();
        let transport = StdioTransport::new(include_bytes!("../input").as_slice(), output.clone()).unwrap();
        serve(Arc::new(backend), &McpConfig::default(), transport).await.unwrap();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        // Answers come as they are ready.
        for (id, what) in [(1, "\"serverInfo\""), (2, "\"check_playbook\""), (3, "\"ok\":true")] {
            let answer = text.lines().find(|line| line.contains(&format!("\"id\":{id},"))).unwrap();
            assert!(answer.contains(what), "{answer}");
        }
    }
}
