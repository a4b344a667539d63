//! Blocks of headers in SPDY/3.1 ("SPDY Protocol - Draft 3.1", "Name/Value Header Block"): pairs of texts
//! with their lengths, compressed as one zlib stream for each direction, which knows the usual names
//! beforehand.

use std::{collections::BTreeMap, io, sync::LazyLock};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

/// Most bytes of a block.
const LONGEST: usize = 64 * 1024;

/// The words that the dictionary begins with, each behind its length; `_` is a space.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language \
    accept-ranges age allow authorization cache-control connection content-base content-encoding content-language \
    content-length content-location content-md5 content-range content-type date etag expect expires from host if-match \
    if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma \
    proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie \
    keep-alive origin";

/// What follows them.
const TEXT: &str = concat!(
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505",
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized",
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable",
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT",
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,",
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
);

static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for word in WORDS.split_ascii_whitespace() {
        put(&mut all, word.replace('_', " ").as_bytes());
    }
    all.extend_from_slice(TEXT.as_bytes());
    all
});

/// Headers by their names in lower case; several values of one are joined by NUL.
pub(super) type Headers = BTreeMap<String, String>;

fn put(block: &mut Vec<u8>, text: &[u8]) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    block.extend_from_slice(&length.to_be_bytes());
    block.extend_from_slice(text);
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("SPDY headers: {what}"))
}

/// The blocks that come in through one connection.
pub(super) struct Reader(Decompress);

impl Reader {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// The headers of the next block.
    ///
    /// # Errors
    /// It is malformed, or longer than 64 KiB.
    pub(super) fn read(&mut self, compressed: &[u8]) -> io::Result<Headers> {
        parse(&self.inflate(compressed)?)
    }

    fn inflate(&mut self, mut compressed: &[u8]) -> io::Result<Vec<u8>> {
        let mut block = Vec::with_capacity(1024);
        while !compressed.is_empty() {
            if block.len() == block.capacity() {
                block.reserve(block.len());
            }
            let before = (self.0.total_in(), block.len());
            match self.0.decompress_vec(compressed, &mut block, FlushDecompress::Sync) {
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0.set_dictionary(&DICTIONARY).map_err(|error| malformed(&error.to_string()))?;
                }
                Err(error) => return Err(malformed(&error.to_string())),
            }
            let taken = usize::try_from(self.0.total_in() - before.0).unwrap_or(usize::MAX);
            compressed = compressed.get(taken..).unwrap_or_default();
            if block.len() > LONGEST {
                return Err(malformed("the block is too long"));
            }
            if taken == 0 && block.len() == before.1 && block.len() < block.capacity() {
                return Err(malformed("the block ends in the middle"));
            }
        }
        Ok(block)
    }
}

fn parse(mut block: &[u8]) -> io::Result<Headers> {
    let count = number(&mut block)?;
    (0..count).map(|_| Ok((text(&mut block)?.to_ascii_lowercase(), text(&mut block)?))).collect()
}

fn number(block: &mut &[u8]) -> io::Result<usize> {
    let (head, rest) = block.split_first_chunk().ok_or_else(|| malformed("a number is cut off"))?;
    *block = rest;
    usize::try_from(u32::from_be_bytes(*head)).map_err(|_| malformed("a number is too large"))
}

fn text(block: &mut &[u8]) -> io::Result<String> {
    let length = number(block)?;
    let (text, rest) = block.split_at_checked(length).ok_or_else(|| malformed("a text is cut off"))?;
    *block = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The blocks that go out through one connection. They are written without the dictionary, which readers
/// accept and which is good enough for the few there are.
pub(super) struct Writer(Compress);

impl Writer {
    pub(super) fn new() -> Self {
        Self(Compress::new(Compression::fast(), true))
    }

    /// The block of some headers.
    ///
    /// # Errors
    /// They do not fit in one.
    pub(super) fn write(&mut self, headers: &Headers) -> io::Result<Vec<u8>> {
        let mut block = Vec::new();
        block.extend_from_slice(&u32::try_from(headers.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (name, value) in headers {
            put(&mut block, name.as_bytes());
            put(&mut block, value.as_bytes());
        }
        // What does not compress grows by some bytes.
        let mut compressed = Vec::with_capacity(block.len() * 2 + 64);
        let begun = self.0.total_in();
        self.0
            .compress_vec(&block, &mut compressed, FlushCompress::Sync)
            .map_err(|error| malformed(&error.to_string()))?;
        match usize::try_from(self.0.total_in() - begun) {
            Ok(taken) if taken == block.len() => Ok(compressed),
            _ => Err(malformed("the block does not fit")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a client with the dictionary sends.
    fn sent(headers: &Headers, compress: &mut Compress) -> Vec<u8> {
        let mut block = u32::try_from(headers.len()).expect("few").to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            put(&mut block, text.as_bytes());
        }
        let mut compressed = Vec::with_capacity(block.len() * 2 + 64);
        compress.compress_vec(&block, &mut compressed, FlushCompress::Sync).expect("compresses");
        compressed
    }

    #[test]
    fn the_dictionary_is_that_of_the_protocol() {
        let mut compress = Compress::new(Compression::default(), true);
        assert_eq!(DICTIONARY.len(), 1423);
        assert_eq!(compress.set_dictionary(&DICTIONARY).expect("is taken"), 0xe3c6_a7c2);
    }

    #[test]
    fn blocks_of_one_connection_follow_one_another() {
        let mut compress = Compress::new(Compression::default(), true);
        compress.set_dictionary(&DICTIONARY).expect("is taken");
        let mut reader = Reader::new();
        for port in ["8081", "6379"] {
            let headers = [("port", port), ("requestid", "0"), ("streamtype", "data")];
            let headers: Headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            assert_eq!(reader.read(&sent(&headers, &mut compress)).expect("is read"), headers);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(headers: BTreeMap<String, String>) {
            let headers: Headers =
                headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
            let block = Writer::new().write(&headers).expect("fits");
            prop_assert_eq!(Reader::new().read(&block).expect("is read"), headers);
        }

        #[test]
        fn anything_is_read_or_refused(bytes: Vec<u8>) {
            let _ = Reader::new().read(&bytes);
            let _ = parse(&bytes);
        }
    }
}
