//! What each level of confinement denies, and what works all the same.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use avow_exec::{Base, Confinement};
use avow_model::attempt::{Failure, Outcome};
use avow_model::digest::BlobDigest;
use support::{Bench, reads, sh, slot, words, writes};

/// A bench whose project and home are folders of the test; `None` where this machine cannot deny reads.
struct Place {
    bench: Bench,
    _home: tempfile::TempDir,
    home: PathBuf,
}

impl Place {
    fn new(level: Confinement, path: &[&str]) -> Option<Self> {
        if !avow_exec::probe().write_protection {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let inside = |name: &&str| home.join(name);
        let given = std::env::var_os("PATH").unwrap();
        let folders = path.iter().map(inside).chain(std::env::split_paths(&given));
        let path = std::env::join_paths(folders).unwrap();
        let bench = Bench::with(|config| {
            config.confinement = Some(level);
            config.bounds.project = config.work.ancestors().nth(2).map(Path::to_owned);
            config.base = Base { path, home: home.clone().into(), within: None };
        });
        Some(Self { bench, _home: folder, home })
    }

    fn project(&self, name: &str, text: &str) -> PathBuf {
        write(&self.bench.folder.path().join(name), text)
    }

    fn home(&self, name: &str, text: &str) -> PathBuf {
        write(&self.home.join(name), text)
    }

    async fn says(&self, text: &str) -> (Outcome, String, String) {
        let done = self.bench.run(&sh(text)).await;
        (done.outcome, self.bench.text(done.stdout), self.bench.text(done.stderr))
    }
}

fn write(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    path.canonicalize().unwrap()
}

fn script(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn undeclared_files_of_project_home_and_tmp_are_denied() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let outside = tempfile::tempdir().unwrap();
    let files = [
        place.project("data/extra.csv", "a"),
        place.home("notes.txt", "b"),
        place.home(".local/share/notes.txt", "b"),
        write(&outside.path().join("c"), "c"),
    ];
    for file in files {
        let (outcome, out, err) = place.says(&format!("cat {0}; echo {0}", file.display())).await;
        assert_eq!(outcome, Outcome::Failed(Failure::Exit(1)), "{out}");
        assert!(err.contains("Permission denied"), "{err}");
        let (_, out, _) = place.says(&format!("ls {} || echo no", file.parent().unwrap().display())).await;
        assert_eq!(out, "no\n");
    }
    // What is not there is not denied: a program may look for an optional file.
    let absent = place.bench.folder.path().join("absent");
    let (_, _, err) = place.says(&format!("cat {}", absent.display())).await;
    assert!(err.contains("No such file"), "{err}");
}

#[tokio::test]
async fn denial_holds_for_what_a_stage_starts_and_executes() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let secret = place.project("secret", "x");
    let tool = place.project("tool", "#!/bin/sh\necho ran\n");
    script(&tool);
    let text = format!(
        "(cat {0} || echo no) & wait; setsid sh -c 'cat {0} || echo no'; {1} || echo no; ln -s {0} link; cat link || echo no; \
         python3 -c 'import os; os.link(\"{0}\", \"hard\")' || echo no",
        secret.display(),
        tool.display()
    );
    let (outcome, out, err) = place.says(&text).await;
    assert_eq!(outcome, Outcome::Succeeded, "{err}");
    assert_eq!(out, "no\n".repeat(5), "{err}");
}

#[tokio::test]
async fn only_deny_denies_reading() {
    for level in [Confinement::None, Confinement::Declared] {
        let Some(place) = Place::new(level, &[]) else { return };
        let file = place.project("data/extra.csv", "readable\n");
        let (_, out, err) = place.says(&format!("cat {}", file.display())).await;
        assert_eq!(out, "readable\n", "{err}");
    }
}

#[tokio::test]
async fn blobs_are_read_by_name_and_not_listed() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let input = place.bench.put(b"declared\n");
    let other = place.bench.put(b"other\n");
    let path = |artifact: avow_model::digest::Artifact| place.bench.project.blob(artifact.blob());
    let text = format!(
        "cat in; cat {}; ls {} || echo no; ls {} || echo no",
        path(other).display(),
        place.bench.project.blobs().display(),
        path(other).parent().unwrap().display()
    );
    let done = place.bench.run(&reads(sh(&text), "in", input)).await;
    assert_eq!(place.bench.text(done.stdout), "declared\nother\nno\nno\n");
}

#[tokio::test]
async fn an_allowed_path_can_be_read_and_its_neighbour_cannot() {
    if !avow_exec::probe().write_protection {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shared = write(&folder.path().join("shared/deep/data.csv"), "shared\n");
    let one = write(&folder.path().join("one.txt"), "one\n");
    let other = write(&folder.path().join("other.txt"), "other\n");
    let bench = Bench::with(|config| {
        config.confinement = Some(Confinement::Deny);
        config.bounds.allow = vec![folder.path().join("shared"), one.clone()];
    });
    let text = format!("cat {} {}; cat {} || echo no", shared.display(), one.display(), other.display());
    let done = bench.run(&sh(&text)).await;
    assert_eq!(bench.text(done.stdout), "shared\none\nno\n");
}

#[tokio::test]
async fn a_virtual_environment_in_the_project_works() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let environment = place.bench.folder.path().canonicalize().unwrap().join(".venv");
    let made =
        Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&environment).status().unwrap();
    assert!(made.success());
    let version = Command::new(environment.join("bin/python"))
        .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        .output()
        .unwrap();
    let packages = PathBuf::from(String::from_utf8(version.stdout).unwrap().trim());
    write(&packages.join("installed.py"), "value = 42\n");
    let test =
        "import installed, json, ssl, ctypes, sys; print(installed.value, sys.prefix != sys.base_prefix)";
    let mut action = words(&["python", "-c", test]);
    let path = format!("{}:{}", environment.join("bin").display(), std::env::var("PATH").unwrap());
    action.env.insert("PATH".to_owned(), path);
    action.toolchain.insert("python".to_owned(), BlobDigest::of(b""));
    let done = place.bench.run(&action).await;
    assert_eq!(place.bench.text(done.stdout), "42 True\n", "{}", place.bench.text(done.stderr));
}

#[tokio::test]
async fn an_interpreter_behind_a_shim_in_the_home_works() {
    let Some(place) = Place::new(Confinement::Deny, &[".manager/shims", ".local/bin"]) else { return };
    let home = place.home.display();
    place.home(".manager/versions/1/lib/library", "the library\n");
    let real = "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/library\"\n";
    script(&place.home(".manager/versions/1/bin/interpreter", real));
    let shim = format!("#!/bin/sh\nexec {home}/.manager/versions/1/bin/interpreter \"$@\"\n");
    script(&place.home(".manager/shims/interpreter", &shim));
    // An application in an environment of its own, started by a script with a long first line.
    place.home("apps/tool/pyvenv.cfg", "home = /usr/bin\n");
    place.home("apps/tool/lib/library", "the application\n");
    script(&place.home("apps/tool/bin/python", "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/library\"\n"));
    script(&place.home(".local/bin/tool", &format!("#!{home}/apps/tool/bin/python -I\n")));
    let mut action = sh("interpreter; tool");
    for name in ["interpreter", "tool"] {
        action.toolchain.insert(name.to_owned(), BlobDigest::of(b""));
    }
    let done = place.bench.run(&action).await;
    let said = place.bench.text(done.stdout);
    assert_eq!(said, "the library\nthe application\n", "{}", place.bench.text(done.stderr));
}

#[tokio::test]
async fn a_script_finds_its_own_modules_and_not_those_of_the_project() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let root = place.bench.folder.path().canonicalize().unwrap();
    place.project("package/undeclared.py", "value = 2\n");
    let code = place.bench.tree(&[
        ("main.py", place.bench.file(b"import package.local as l, sys\nprint(l.value)\nsys.path.append(sys.argv[1])\nimport undeclared\n", false)),
        ("package/__init__.py", place.bench.file(b"", false)),
        ("package/local.py", place.bench.file(b"value = 1\n", false)),
    ]);
    let mut action = words(&["python3", "main.py", root.join("package").to_str().unwrap()]);
    action.code = Some(code);
    let done = place.bench.run(&action).await;
    assert_eq!(place.bench.text(done.stdout), "1\n", "{}", place.bench.text(done.stderr));
    assert!(place.bench.text(done.stderr).contains("No module named 'undeclared'"));
}

#[tokio::test]
async fn a_program_is_compiled_and_runs_with_its_own_library() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let code = place.bench.tree(&[
        ("lib.c", place.bench.file(b"int seven(void) { return 7; }\n", false)),
        (
            "main.c",
            place.bench.file(
                b"#include <stdio.h>\nint seven(void);\nint main(void) { printf(\"%d\\n\", seven()); }\n",
                false,
            ),
        ),
    ]);
    let text = "cc -shared -fPIC -o lib/libseven.so lib.c; cc -o prog main.c -Llib -lseven -Wl,-rpath,'$ORIGIN/lib'; ./prog";
    let mut action = writes(sh(text), "library", slot("lib/libseven.so"));
    action = writes(action, "program", slot("prog"));
    action.code = Some(code);
    let done = place.bench.run(&action).await;
    assert_eq!(place.bench.text(done.stdout), "7\n", "{}", place.bench.text(done.stderr));
    let run = reads(sh("./prog"), "prog", done.outputs["program"].artifact);
    let run = reads(run, "lib/libseven.so", done.outputs["library"].artifact);
    let text = "cp prog p; chmod +x p; ./p";
    let done = place.bench.run(&avow_model::action::Action { command: sh(text).command, ..run }).await;
    assert_eq!(place.bench.text(done.stdout), "7\n", "{}", place.bench.text(done.stderr));
}

#[tokio::test]
async fn the_network_is_denied_unless_the_action_may_use_it() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    if !place.bench.executor.host().confinement.contains("offline") {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!(
        "import socket\ntry:\n  socket.create_connection(('127.0.0.1', {port})); print('connected')\nexcept PermissionError:\n  print('denied')\n"
    );
    let mut action = words(&["python3", "-c", &text]);
    let done = place.bench.run(&action).await;
    assert_eq!(place.bench.text(done.stdout), "denied\n", "{}", place.bench.text(done.stderr));
    assert_eq!(done.host.confinement, "deny+offline");
    action.network = true;
    let done = place.bench.run(&action).await;
    assert_eq!(place.bench.text(done.stdout), "connected\n", "{}", place.bench.text(done.stderr));
    assert_eq!(done.host.confinement, "deny");
}

/// Tries one kind of socket after the other, and says of each what became of it.
const SOCKETS: &str = r"
import socket, sys
udp, abstract = int(sys.argv[1]), sys.argv[2]
def tried(name, work):
    try:
        work()
        print(name, 'open')
    except PermissionError:
        print(name, 'denied')
    except OSError as error:
        print(name, 'failed', error.errno)
def send(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as out:
        out.sendto(b'x', address)
def fast():
    with socket.socket() as out:
        out.sendto(b'x', socket.MSG_FASTOPEN, ('127.0.0.1', udp))
def reach():
    with socket.socket(socket.AF_UNIX) as out:
        out.connect('\0' + abstract)
def own():
    with socket.socket(socket.AF_UNIX) as here, socket.socket(socket.AF_UNIX) as there:
        here.bind('\0' + abstract + '-own')
        here.listen()
        there.connect('\0' + abstract + '-own')
tried('udp', lambda: send(socket.AF_INET, ('127.0.0.1', udp)))
tried('udp6', lambda: send(socket.AF_INET6, ('::1', udp)))
tried('mptcp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
tried('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
tried('fast', fast)
tried('abstract', reach)
tried('own', own)
tried('pair', socket.socketpair)
tried('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
";

#[tokio::test]
async fn no_other_kind_of_socket_leads_out_where_the_network_is_denied() {
    use std::os::linux::net::SocketAddrExt;
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    if !place.bench.executor.host().confinement.contains("offline") {
        return;
    }
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    let name = format!("avow-test-{}-{port}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let mut action = words(&["python3", "-c", SOCKETS, &port, &name]);
    let done = place.bench.run(&action).await;
    let said = place.bench.text(done.stdout);
    for denied in ["udp", "udp6", "mptcp", "raw", "vsock", "fast"] {
        assert!(said.contains(&format!("{denied} denied\n")), "{denied}: {said}");
    }
    for open in ["own", "pair", "netlink"] {
        assert!(said.contains(&format!("{open} open\n")), "{open}: {said}");
    }
    if avow_exec::probe().landlock.is_some_and(|version| version >= 6) {
        assert!(said.contains("abstract denied\n"), "{said}");
    }
    udp.set_nonblocking(true).unwrap();
    assert!(udp.recv(&mut [0; 8]).is_err(), "nothing has arrived");
    action.network = true;
    let done = place.bench.run(&action).await;
    let said = place.bench.text(done.stdout);
    assert!(said.contains("udp open\n") && said.contains("abstract open\n"), "{said}");
}

/// What programs do with several processes needs no network.
const PROCESSES: &str = r"
import multiprocessing, multiprocessing.shared_memory
def square(x):
    return x * x
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(square, range(10))))
    queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=queue.put, args=('said',))
    process.start()
    print(queue.get())
    process.join()
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        print(dict(shared))
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=16)
    memory.buf[0] = 7
    print(memory.buf[0])
    memory.close()
    memory.unlink()
";

#[tokio::test]
async fn several_processes_of_a_stage_can_talk_to_each_other() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let done = place.bench.run(&words(&["python3", "-c", PROCESSES])).await;
    let said = place.bench.text(done.stdout);
    assert_eq!(said, "285\nsaid\n{'a': 1}\n7\n", "{}", place.bench.text(done.stderr));
}

#[tokio::test]
async fn shared_memory_is_no_place_to_meet() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let text = "n=/dev/shm/avow-meeting-$$; mkfifo $n 2>&1 || ln -s /etc/hosts $n 2>&1 || mkdir $n && echo a > $n/a && rm -r $n && echo memory; \
                python3 -c 'import os, socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' $n 2>&1 | tail -n 1 || true";
    let (outcome, said, _) = place.says(text).await;
    assert_eq!(outcome, Outcome::Succeeded, "{said}");
    assert_eq!(said.matches("ermission denied").count(), 3, "{said}");
    assert!(said.contains("memory\n"), "{said}");
}

#[tokio::test]
async fn what_held_is_recorded() {
    let off = Bench::with(|config| config.confinement = Some(Confinement::None));
    assert_eq!(off.run(&words(&["true"])).await.host.confinement, "none");
    let protected = avow_exec::probe().write_protection;
    let declared = Bench::with(|config| config.confinement = Some(Confinement::Declared));
    let expected = if protected { "declared+landlock" } else { "declared" };
    assert_eq!(declared.run(&words(&["true"])).await.host.confinement, expected);
    let best = Bench::new();
    let expected = if protected { Confinement::Deny } else { Confinement::Declared };
    assert_eq!(best.executor.confinement(), expected);
    assert_eq!(best.executor.fallback().is_none(), protected);
}

#[tokio::test]
async fn a_folder_that_is_used_again_confines_each_stage_by_its_own_rules() {
    let Some(place) = Place::new(Confinement::Deny, &[]) else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
    for network in [true, false, false, true] {
        let mut action = words(&["python3", "-c", &text]);
        action.network = network;
        let done = place.bench.run(&action).await;
        let free = !place.bench.executor.host().confinement.contains("offline");
        assert_eq!(done.outcome.succeeded(), network || free);
    }
}
