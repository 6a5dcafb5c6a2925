//! An HTTP server that sends exactly the bytes it is told to, and hangs up when it is told to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use taffrail_transport::client::{Client, ClientConfig, FollowConfig, RetryConfig, ServerUrl, Token};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// How many came before it.
    pub(crate) n: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What is done about it, step by step. After the last, the connection is closed.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    /// Keeps the connection open and says nothing more.
    Hang,
    /// Closes it with a reset instead of an end.
    Reset,
}

type Script = dyn Fn(&Asked) -> Vec<Act> + Send + Sync;

/// The server. Ends when dropped.
pub(crate) struct Fake {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    _tasks: JoinSet<()>,
}

impl Fake {
    pub(crate) async fn start(script: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (script, all): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&asked));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&script), Arc::clone(&all)));
            }
        });
        Self { port, asked, _tasks: tasks }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A client of it without much patience.
    pub(crate) fn client(&self) -> Client {
        let mut config = ClientConfig::new(ServerUrl::new(&self.url()).unwrap(), Some(Token::new("hunter2").unwrap()));
        let ms = Duration::from_millis;
        config.follow = FollowConfig {
            header_time: ms(150),
            first_byte_time: ms(150),
            silence: ms(200),
            poll_wait: ms(50),
            poll_for: ms(100),
        };
        config.retry = RetryConfig { first: ms(5), longest: ms(30) };
        config.answer_timeout = Duration::from_secs(2);
        Client::new(config).unwrap()
    }
}

/// One request a connection: every answer says `Connection: close` or is cut off.
async fn serve(stream: TcpStream, script: Arc<Script>, all: Arc<Mutex<Vec<Asked>>>) {
    let mut stream = BufReader::new(stream);
    let Some(mut asked) = read(&mut stream).await else { return };
    let mut stream = stream.into_inner();
    {
        let mut all = all.lock().unwrap();
        asked.n = all.len();
        all.push(asked.clone());
    }
    for act in script(&asked) {
        match act {
            Act::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Pause(time) => tokio::time::sleep(time).await,
            Act::Hang => std::future::pending().await,
            Act::Reset => {
                // A close with unsent time zero is a reset (RFC 9293, section 3.10.4).
                stream.set_zero_linger().unwrap();
                return;
            }
        }
    }
    let _ = stream.shutdown().await;
    // Read to the end, so that the close does not become a reset that takes what was sent with it.
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    use tokio::io::AsyncBufReadExt as _;
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let mut first = lines.first()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let headers: HashMap<_, _> = lines
        .iter()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { n: 0, method, path: path.to_owned(), query, headers, body })
}

/// A whole answer.
pub(crate) fn answer(status: u16, content_type: &str, more: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n"
    );
    vec![Act::Send(format!("{head}{body}").into_bytes())]
}

pub(crate) fn json(body: &str) -> Vec<Act> {
    answer(200, "application/json", "", body)
}

pub(crate) fn problem(status: u16, code: &str, more: &str) -> Vec<Act> {
    let body = format!(r#"{{"status":{status},"code":"{code}","detail":"it is {code}","head":7,"expected":3}}"#);
    answer(status, "application/problem+json", more, &body)
}

/// The head of an event stream, whose end is that of the connection.
pub(crate) fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec()
}
