//! A time stamping authority of one's own: root, intermediate and signer made by `openssl`, answers by `openssl ts`,
//! over HTTP on the loopback address where a test wants that.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

const CONFIG: &str = "\
[tsa]
default_tsa = tsa1
[tsa1]
serial = ./serial
signer_cert = ./tsa.pem
certs = ./chain.pem
signer_key = ./tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1
tsa_name = yes
ess_cert_id_chain = yes
ess_cert_id_alg = sha256
[tsa_ext]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
authorityKeyIdentifier = keyid
[mail_ext]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping, emailProtection
[ca_ext]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[ca]
default_ca = ca1
[ca1]
database = ./index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = dn
[dn]
";

/// The kinds of key that an authority may sign with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RSA with 2048 bits.
    Rsa,
    /// ECDSA over P-256.
    P256,
    /// ECDSA over P-384.
    P384,
}

/// An authority in a folder.
#[derive(Clone, Debug)]
pub struct Authority {
    folder: PathBuf,
}

impl Authority {
    /// Makes one in an empty folder, whose signer is valid from 2020 to 2099.
    pub fn new(folder: &Path, kind: Kind) -> Authority {
        Authority::with(folder, kind, ("20200101000000Z", "20991231000000Z"), "tsa_ext")
    }

    /// The same with a signer of other dates (`YYYYMMDDHHMMSSZ`), and other extensions: `tsa_ext`, or `mail_ext`, which
    /// may do more than stamp.
    pub fn with(folder: &Path, kind: Kind, (start, end): (&str, &str), extensions: &str) -> Authority {
        fs::create_dir_all(folder).expect("the folder can be made");
        let authority = Authority { folder: folder.to_owned() };
        fs::write(folder.join("tsa.cnf"), CONFIG).expect("the folder is ours");
        fs::write(folder.join("index.txt"), "").expect("the folder is ours");
        fs::write(folder.join("serial"), "01\n").expect("the folder is ours");
        let key = |name: &str| authority.key(kind, name);
        key("root.key");
        authority.openssl(&[
            "req",
            "-x509",
            "-new",
            "-key",
            "root.key",
            "-sha256",
            "-days",
            "36000",
            "-subj",
            "/CN=Test Root",
            "-config",
            "tsa.cnf",
            "-extensions",
            "ca_ext",
            "-out",
            "root.pem",
        ]);
        key("between.key");
        authority.request("between", "Test Intermediate");
        authority.issue("between", "root", ("20200101000000Z", "20991231000000Z"), "ca_ext");
        key("tsa.key");
        authority.request("tsa", "Test Stamper");
        authority.issue("tsa", "between", (start, end), extensions);
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it was just made");
        fs::write(folder.join("chain.pem"), read("between.pem")).expect("the folder is ours");
        authority
    }

    /// From here on its stamps have fractions of a second.
    pub fn stamp_fractions(&self) {
        let config = CONFIG.replace("accuracy = secs:1", "accuracy = secs:1\nclock_precision_digits = 6");
        fs::write(self.path("tsa.cnf"), config).expect("the folder is ours");
    }

    /// The answer to a request, signed by RSASSA-PSS: with the signer's own RSA key, or with one for this scheme alone.
    /// `openssl ts` cannot, so its content is signed again with `openssl cms`.
    pub fn answer_by_pss(&self, request: &[u8], for_pss_alone: bool) -> Vec<u8> {
        fs::write(self.path("usual.tsr"), self.answer(request)).expect("the folder is ours");
        self.openssl(&["ts", "-reply", "-in", "usual.tsr", "-token_out", "-out", "usual.token"]);
        let content =
            ["cms", "-verify", "-noverify", "-inform", "DER", "-in", "usual.token", "-out", "content"];
        self.openssl(&content);
        let name = if for_pss_alone { "pss" } else { "tsa" };
        if for_pss_alone {
            self.openssl(&[
                "genpkey",
                "-algorithm",
                "RSA-PSS",
                "-pkeyopt",
                "rsa_keygen_bits:2048",
                "-out",
                "pss.key",
            ]);
            self.request(name, "Test Stamper");
            self.issue(name, "between", ("20200101000000Z", "20991231000000Z"), "tsa_ext");
        }
        let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
        self.openssl(&[
            "cms",
            "-sign",
            "-binary",
            "-nodetach",
            "-cades",
            "-nosmimecap",
            "-md",
            "sha256",
            "-econtent_type",
            "1.2.840.113549.1.9.16.1.4",
            "-in",
            "content",
            "-signer",
            &cert,
            "-inkey",
            &key,
            "-certfile",
            "chain.pem",
            "-keyopt",
            "rsa_padding_mode:pss",
            "-keyopt",
            "rsa_pss_saltlen:digest",
            "-outform",
            "DER",
            "-out",
            "pss.token",
        ]);
        // TimeStampResp ::= SEQUENCE { status SEQUENCE { INTEGER 0 }, token }
        let token = self.read("pss.token");
        let body = [&[0x30, 0x03, 0x02, 0x01, 0x00], token.as_slice()].concat();
        let length = u16::try_from(body.len()).expect("a token is small").to_be_bytes();
        [&[0x30, 0x82], length.as_slice(), &body].concat()
    }

    fn key(&self, kind: Kind, name: &str) {
        match kind {
            Kind::Rsa => self.openssl(&[
                "genpkey",
                "-algorithm",
                "RSA",
                "-pkeyopt",
                "rsa_keygen_bits:2048",
                "-out",
                name,
            ]),
            Kind::P256 => {
                self.openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", name])
            }
            Kind::P384 => self.openssl(&["ecparam", "-name", "secp384r1", "-genkey", "-noout", "-out", name]),
        };
    }

    fn request(&self, name: &str, subject: &str) {
        let (key, csr, subject) = (format!("{name}.key"), format!("{name}.csr"), format!("/CN={subject}"));
        self.openssl(&["req", "-new", "-key", &key, "-subj", &subject, "-config", "tsa.cnf", "-out", &csr]);
    }

    fn issue(&self, name: &str, by: &str, (start, end): (&str, &str), extensions: &str) {
        let [csr, pem] = ["csr", "pem"].map(|suffix| format!("{name}.{suffix}"));
        let [key, cert] = ["key", "pem"].map(|suffix| format!("{by}.{suffix}"));
        self.openssl(&[
            "ca",
            "-batch",
            "-notext",
            "-config",
            "tsa.cnf",
            "-extensions",
            extensions,
            "-startdate",
            start,
            "-enddate",
            end,
            "-keyfile",
            &key,
            "-cert",
            &cert,
            "-in",
            &csr,
            "-out",
            &pem,
        ]);
    }

    fn openssl(&self, args: &[&str]) -> Vec<u8> {
        let run = Command::new("openssl").args(args).current_dir(&self.folder).output();
        let run = run.expect("openssl is installed");
        assert!(run.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&run.stderr));
        run.stdout
    }

    /// A file of the authority, such as `root.pem`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The bytes of such a file.
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("the authority has it")
    }

    /// The answer to a request. The authority grants what it can sign, whatever its certificate says.
    pub fn answer(&self, request: &[u8]) -> Vec<u8> {
        fs::write(self.path("q.tsq"), request).expect("the folder is ours");
        self.openssl(&["ts", "-reply", "-config", "tsa.cnf", "-queryfile", "q.tsq", "-out", "q.tsr"]);
        self.read("q.tsr")
    }

    /// Answers over HTTP until the test ends; gives the address.
    pub fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let authority = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away in between is its own matter.
                let _ = authority.reply(stream);
            }
        });
        format!("http://{address}/tsa")
    }

    fn reply(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut length, mut kind, mut line) = (0, String::new(), String::new());
        while reader.read_line(&mut line)? > 0 && line.trim() != "" {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "content-type" => kind = value.trim().to_owned(),
                _ => {}
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if kind != "application/timestamp-query" {
            return stream.write_all(b"HTTP/1.1 415 Unsupported Media Type\r\ncontent-length: 0\r\n\r\n");
        }
        let answer = self.answer(&body);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/timestamp-reply\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(&answer)
    }
}
