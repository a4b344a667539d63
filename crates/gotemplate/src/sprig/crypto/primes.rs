//! RSA and DSA keys from a stream of bytes, for renders that must be repeatable. Nothing secret is computed
//! with these numbers here: the keys go into the output.

use super::der::{integer, sequence};
use num_bigint::BigUint;
use num_traits::{One, Zero};

/// Rounds of the test for primes. For random numbers of these sizes, one in 2^100 composites passes.
const ROUNDS: usize = 8;

/// A source of random bytes.
pub(super) type Source<'s> = dyn FnMut(&mut [u8]) + 's;

fn small_primes() -> Vec<u64> {
    const LIMIT: usize = 2000;
    let mut composite = [false; LIMIT];
    let mut primes = Vec::new();
    for number in 2..LIMIT {
        if !composite[number] {
            primes.push(number as u64);
            (number * number..LIMIT).step_by(number).for_each(|multiple| composite[multiple] = true);
        }
    }
    primes
}

fn random(bits: usize, source: &mut Source<'_>) -> BigUint {
    let mut bytes = vec![0; bits.div_ceil(8)];
    source(&mut bytes);
    BigUint::from_bytes_be(&bytes) >> (bytes.len() * 8 - bits)
}

/// Miller and Rabin's test with random bases.
fn is_prime(number: &BigUint, source: &mut Source<'_>) -> bool {
    let one = BigUint::one();
    let less = number - &one;
    let shift = less.trailing_zeros().unwrap_or(0);
    let odd = &less >> shift;
    let bits = number.bits() as usize;
    'rounds: for _ in 0..ROUNDS {
        let base = random(bits - 1, source) + 2u8;
        let mut power = base.modpow(&odd, number);
        if power == one || power == less {
            continue;
        }
        for _ in 1..shift {
            power = power.modpow(&BigUint::from(2u8), number);
            if power == less {
                continue 'rounds;
            }
        }
        return false;
    }
    true
}

/// The first prime from a start on, in steps.
fn next_prime(start: BigUint, step: &BigUint, small: &[u64], source: &mut Source<'_>) -> BigUint {
    let residues: Vec<(u64, u64, u64)> = small
        .iter()
        .map(|&prime| {
            let rest = |number: &BigUint| (number % prime).iter_u64_digits().next().unwrap_or(0);
            (prime, rest(&start), rest(step))
        })
        .collect();
    let mut count = 0u64;
    loop {
        let divisible = residues
            .iter()
            .any(|(prime, start, step)| (start + step * (count % prime)).is_multiple_of(*prime));
        if !divisible {
            let candidate = &start + step * count;
            if is_prime(&candidate, source) {
                return candidate;
            }
        }
        count += 1;
    }
}

/// A prime of exactly so many bits, with the two highest set.
fn prime(bits: usize, small: &[u64], source: &mut Source<'_>) -> BigUint {
    let mut start = random(bits, source);
    start.set_bit(bits as u64 - 1, true);
    start.set_bit(bits as u64 - 2, true);
    start.set_bit(0, true);
    next_prime(start, &BigUint::from(2u8), small, source)
}

/// A PKCS #1 RSA private key.
pub(super) fn rsa(bits: usize, source: &mut Source<'_>) -> Vec<u8> {
    let small = small_primes();
    loop {
        let (p, q) = (prime(bits / 2, &small, source), prime(bits / 2, &small, source));
        let (p, q) = if p > q { (p, q) } else { (q, p) };
        if let Some(key) = rsa_of(&p, &q) {
            return key;
        }
    }
}

/// An RSA private key of 2048 bits that everybody knows, from two primes that are quickly written down: a
/// search for primes takes as long as rendering a hundred charts.
pub(super) fn mock_rsa() -> Vec<u8> {
    let p = (BigUint::one() << 1024u32) - 105u8;
    let q = (BigUint::from(3u8) << 1022u32) + 1037u16;
    rsa_of(&p, &q).expect("both are prime, and neither is one more than a multiple of the exponent")
}

/// The PKCS #1 form of a key with these primes, the greater first; nothing if the usual exponent does not fit
/// them.
fn rsa_of(p: &BigUint, q: &BigUint) -> Option<Vec<u8>> {
    let exponent = BigUint::from(65_537u32);
    let (p1, q1) = (p - 1u8, q - 1u8);
    let private = exponent.modinv(&(&p1 * &q1))?;
    let inverse = q.modinv(p)?;
    let numbers = [
        &BigUint::zero(),
        &(p * q),
        &exponent,
        &private,
        p,
        q,
        &(&private % &p1),
        &(&private % &q1),
        &inverse,
    ];
    Some(sequence(&numbers.map(integer)))
}

/// A DSA private key with parameters of 2048 and 256 bits, in OpenSSL's form.
pub(super) fn dsa(source: &mut Source<'_>) -> Vec<u8> {
    let small = small_primes();
    let q = prime(256, &small, source);
    let double = &q * 2u8;
    let mut start = random(2048, source);
    start.set_bit(2047, true);
    start.set_bit(2046, true);
    // The first number from there on that is one more than a multiple of 2q.
    let start = &start - &start % &double + 1u8;
    let p = next_prime(start, &double, &small, source);
    let one = BigUint::one();
    let power = (&p - 1u8) / &q;
    let generator = (2u32..).map(|base| BigUint::from(base).modpow(&power, &p)).find(|found| *found != one);
    let generator = generator.expect("almost every base generates the subgroup");
    let private = random(512, source) % (&q - 1u8) + 1u8;
    let public = generator.modpow(&private, &p);
    sequence(&[&BigUint::zero(), &p, &q, &generator, &public, &private].map(integer))
}
