//! A program in a container, over a WebSocket: Kubernetes' `v5.channel.k8s.io`, in which a frame's first byte says which stream
//! it belongs to; and what a container says by itself, the same way. How the program gets into the container is its host's business: here a process is started, fed and heard.

use super::ask::{Reply, Target, What};
use super::failure::Failure;
use super::http::{Answer, Caller, Upgrade};
use super::logs;
use super::query::Query;
use super::resource::Subresource;
use bytes::Bytes;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

/// The protocols that are spoken, best first. The fifth tells that a stream ends; else they are alike.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// The largest frame that a client may send.
const LARGEST: usize = 1 << 20;
/// So much is read of a program at once.
const PIECE: usize = 32 << 10;
/// What the program's own children still write after its end is heard for so long.
const LAST_WORDS: Duration = Duration::from_millis(500);

type Socket = WebSocketStream<TokioIo<Upgraded>>;
type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A program that runs.
struct Running {
    child: Child,
    input: Option<Input>,
    outputs: Vec<(u8, Output)>,
    terminal: Option<OwnedFd>,
}

impl Caller {
    /// `exec`, `attach`, `portforward`.
    pub(super) async fn connect(
        &self,
        request: Request<Incoming>,
        query: &Query,
        part: Option<&'static Subresource>,
        target: Target,
    ) -> Result<Answer, Failure> {
        let part = part.map_or("", |part| part.name);
        if !matches!(part, "exec" | "attach") {
            self.ask(target, What::Permission("create")).await?;
            let what = format!("this node does not serve pods/{part}: it serves pods/exec, attach and log");
            return Err(Failure::not_implemented(what));
        }
        let tty = query.flag("tty");
        let streams = ["stdin", "stdout", "stderr"].map(|stream| query.flag(stream));
        if streams == [false; 3] {
            return Err(Failure::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
        }
        if part == "attach" {
            return self.attach(request, query.text("container").to_owned(), streams, target).await;
        }
        let (container, command) = (query.text("container").to_owned(), query.all("command").to_vec());
        let Reply::Exec(process) = self.ask(target, What::Exec { container, command, tty }).await? else {
            return Err(Failure::internal("a program was to be run"));
        };
        let upgrade = upgrade(request.headers())?;
        let turn = self.server.programs.clone().try_acquire_owned();
        let turn = turn.map_err(|_| Failure::too_many_requests("too many programs run in containers", 1))?;
        let running = start(process, streams, tty).map_err(Failure::internal)?;
        tokio::spawn(async move {
            // A client that goes before it is answered takes the program with it.
            if let Some(socket) = upgraded(request).await {
                converse(socket, running).await;
            }
            drop(turn);
        });
        Ok(Answer::switch(upgrade))
    }

    /// What a container says from now on. What is said to it goes nowhere: no container has a standard input.
    async fn attach(
        &self,
        request: Request<Incoming>,
        container: String,
        streams: [bool; 3],
        target: Target,
    ) -> Result<Answer, Failure> {
        let [stdin, stdout, stderr] = streams;
        let ask = move || What::Attach { container: container.clone(), stdin };
        let Reply::Log(place) = self.ask(target.clone(), ask()).await? else {
            return Err(Failure::internal("a container was to be heard"));
        };
        let path = logs::file(&place, false).await?;
        let path = path.ok_or_else(|| Failure::bad_request("the container has not begun to write"))?;
        let upgrade = upgrade(request.headers())?;
        let wanted = logs::Wanted::from_now_on([stdout, stderr]);
        let said = self.told_on(path, place, wanted, target, ask);
        tokio::spawn(async move {
            if let Some(socket) = upgraded(request).await {
                listen(socket, said).await;
            }
        });
        Ok(Answer::switch(upgrade))
    }
}

async fn upgraded(request: Request<Incoming>) -> Option<Socket> {
    let stream = TokioIo::new(hyper::upgrade::on(request).await.ok()?);
    let limits = WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
    Some(WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits)).await)
}

/// Until nothing is said any more or the client goes.
async fn listen(socket: Socket, mut said: mpsc::Receiver<Bytes>) {
    let (mut sink, mut frames) = socket.split();
    loop {
        tokio::select! {
            piece = said.recv() => match piece {
                Some(piece) => if sink.send(Message::Binary(piece)).await.is_err() { return },
                None => break,
            },
            frame = frames.next() => if !matches!(frame, Some(Ok(_))) { return },
        }
    }
    take_leave(&mut sink, &json!({"metadata": {}, "status": "Success"})).await;
    // The client closes in turn, or is left.
    let closed = async { while let Some(Ok(_)) = frames.next().await {} };
    tokio::time::timeout(LAST_WORDS, closed).await.ok();
}

/// The last frames: how it ended, and that it did.
async fn take_leave(sink: &mut SplitSink<Socket, Message>, status: &Value) {
    let mut last = vec![ERROR];
    last.extend(status.to_string().into_bytes());
    sink.send(Message::Binary(last.into())).await.ok();
    let goodbye = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    sink.send(Message::Close(Some(goodbye))).await.ok();
}

/// What the connection is to go on with, if it is something that is spoken here.
fn upgrade(headers: &HeaderMap) -> Result<Upgrade, Failure> {
    let words = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(|word| word.trim().to_owned()).collect()
    };
    if !words("upgrade").iter().any(|word| word.eq_ignore_ascii_case("websocket")) {
        let what = "unable to upgrade: this node speaks WebSocket here (v5.channel.k8s.io), as kubectl does from 1.31 on";
        return Err(Failure::bad_request(what));
    }
    let offered = words("sec-websocket-protocol");
    let protocol = PROTOCOLS.into_iter().find(|known| offered.iter().any(|word| word == known));
    let protocol = protocol.ok_or_else(|| {
        Failure::bad_request(format!("unable to upgrade: none of {} is offered", PROTOCOLS.join(", ")))
    })?;
    let key = headers.get("sec-websocket-key").map(|key| derive_accept_key(key.as_bytes()));
    let accept = key.ok_or_else(|| Failure::bad_request("unable to upgrade: no Sec-WebSocket-Key"))?;
    Ok(Upgrade { accept, protocol })
}

fn start(process: std::process::Command, streams: [bool; 3], tty: bool) -> io::Result<Running> {
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::from(process);
    command.kill_on_drop(true);
    if tty {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&terminal, rustix::io::FdFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let name = ptsname(&terminal, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = rustix::fs::open(name, flags, Mode::empty())?;
        let child = command.stdin(side.try_clone()?).stdout(side.try_clone()?).stderr(side).spawn()?;
        // The command holds the terminal's other side: without it the program's end is the terminal's.
        drop(command);
        let file =
            |terminal: &OwnedFd| terminal.try_clone().map(|fd| tokio::fs::File::from_std(File::from(fd)));
        let input: Option<Input> = if stdin { Some(Box::new(file(&terminal)?)) } else { None };
        let outputs: Vec<(u8, Output)> = vec![(STDOUT, Box::new(file(&terminal)?))];
        return Ok(Running { child, input, outputs, terminal: Some(terminal) });
    }
    let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(pipe(stdin)).stdout(pipe(stdout)).stderr(pipe(stderr)).spawn()?;
    let input = child.stdin.take().map(|input| Box::new(input) as Input);
    let stdout = child.stdout.take().map(|output| (STDOUT, Box::new(output) as Output));
    let stderr = child.stderr.take().map(|output| (STDERR, Box::new(output) as Output));
    let outputs = [stdout, stderr].into_iter().flatten().collect();
    Ok(Running { child, input, outputs, terminal: None })
}

/// Until the program ends or the client goes.
async fn converse(socket: Socket, running: Running) {
    let Running { mut child, input, outputs, terminal } = running;
    let (mut sink, mut frames) = socket.split();
    // What comes in and what goes out wait for nobody but themselves.
    let mut fed = tokio::spawn(async move {
        let mut input = input;
        while let Some(Ok(frame)) = frames.next().await {
            let Message::Binary(bytes) = frame else { continue };
            match bytes.split_first() {
                Some((&STDIN, data)) => {
                    if let Some(open) = &mut input
                        && (open.write_all(data).await.is_err() || open.flush().await.is_err())
                    {
                        input = None;
                    }
                }
                Some((&CLOSE, [STDIN])) => {
                    // A terminal has no end: its program is told as if somebody typed it.
                    if let (Some(open), Some(_)) = (&mut input, &terminal) {
                        open.write_all(&[4]).await.ok();
                        open.flush().await.ok();
                    }
                    input = None;
                }
                Some((&RESIZE, size)) => resize(terminal.as_ref(), size),
                Some(_) | None => {}
            }
        }
    });
    let (out, mut said) = mpsc::channel::<Bytes>(16);
    for (channel, output) in outputs {
        tokio::spawn(pump(channel, output, out.clone()));
    }
    drop(out);
    let mut status = None;
    let mut over = None;
    loop {
        tokio::select! {
            piece = said.recv() => match piece {
                Some(piece) => if sink.send(Message::Binary(piece)).await.is_err() { return },
                None => break,
            },
            ended = child.wait(), if status.is_none() => {
                status = Some(ended);
                over = Some(tokio::time::Instant::now() + LAST_WORDS);
            }
            () = tokio::time::sleep_until(over.unwrap_or_else(tokio::time::Instant::now)), if over.is_some() => break,
            // The client has gone; the program goes with it.
            _ = &mut fed => return,
        }
    }
    let status = match status {
        Some(status) => status,
        None => child.wait().await,
    };
    take_leave(&mut sink, &told(status)).await;
    // The client closes in turn, or is left.
    tokio::time::timeout(LAST_WORDS, &mut fed).await.ok();
    fed.abort();
}

async fn pump(channel: u8, mut output: Output, out: mpsc::Sender<Bytes>) {
    let mut piece = vec![0; PIECE + 1];
    piece[0] = channel;
    // A terminal whose other side is closed answers with an error: that is its end.
    while let Ok(got) = output.read(&mut piece[1..]).await
        && got > 0
    {
        if out.send(Bytes::copy_from_slice(&piece[..=got])).await.is_err() {
            return;
        }
    }
}

fn resize(terminal: Option<&OwnedFd>, size: &[u8]) {
    let Ok(size) = serde_json::from_slice::<Value>(size) else { return };
    let cells = |field: &str| size[field].as_u64().and_then(|cells| u16::try_from(cells).ok());
    if let (Some(terminal), Some(columns), Some(rows)) = (terminal, cells("Width"), cells("Height")) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(terminal.as_fd(), size).ok();
    }
}

/// The last frame: how it ended.
fn told(status: io::Result<ExitStatus>) -> Value {
    let code = match status {
        Ok(status) => status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(0),
        Err(error) => {
            let what = format!("Internal error occurred: {error}");
            return json!({"metadata": {}, "status": "Failure", "reason": "InternalError", "message": what, "code": 500});
        }
    };
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit code {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]}})
}
