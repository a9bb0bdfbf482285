//! Text armour: certificates of authorities as PEM, or as DER.

use data_encoding::BASE64;

use crate::Refusal;

/// The certificates of a file, as DER: all blocks of PEM, or the one that the bytes are.
pub fn certificates(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.contains(BEGIN)) else {
        return if bytes.first() == Some(&0x30) {
            Ok(vec![bytes.to_vec()])
        } else {
            Err(Refusal::Malformed("it holds no certificate".to_owned()))
        };
    };
    let mut found = Vec::new();
    for block in text.split(BEGIN).skip(1) {
        let (body, _) = block
            .split_once(END)
            .ok_or_else(|| Refusal::Malformed("a certificate does not end".to_owned()))?;
        let body: String = body.split_whitespace().collect();
        let der = BASE64.decode(body.as_bytes()).map_err(|error| Refusal::Malformed(error.to_string()))?;
        found.push(der);
    }
    Ok(found)
}
