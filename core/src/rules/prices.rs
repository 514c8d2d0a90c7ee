//! What models cost. The page is `core/data/prices.txt`; the user's own prices override it in the host and
//! frozen into the first line of a run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::model::{Costs, Money, Price, Role, Tier};
use crate::persona::ROLES;

/// The page as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// The day the prices were looked up.
    pub as_of: String,
    pub tiers: BTreeMap<Tier, Price>,
    pub models: BTreeMap<String, Price>,
    pub typical: BTreeMap<Role, Typical>,
}

/// Tokens an attempt of a role usually takes in and gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Typical {
    pub input: u64,
    pub output: u64,
}

/// The page this program comes with.
pub fn built_in() -> &'static Prices {
    static PAGE: LazyLock<Prices> = LazyLock::new(|| read(include_str!("../../data/prices.txt")).0);
    &PAGE
}

/// Reads a page of prices, and returns the lines that can't be read.
pub fn read(page: &str) -> (Prices, Vec<String>) {
    let (mut prices, mut unread) = (Prices::default(), Vec::new());
    for line in page.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if prices.line(line).is_none() {
            unread.push(line.to_owned());
        }
    }
    (prices, unread)
}

impl Prices {
    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["as_of", day] => (*day).clone_into(&mut self.as_of),
            ["tier", name, rates @ .., model] => {
                drop(self.tiers.insert(Tier::parse(name)?, price(model, rates)?));
            }
            ["model", name, rates @ ..] => drop(self.models.insert((*name).to_owned(), price(name, rates)?)),
            ["typical", name, input, output] => {
                let typical = Typical { input: input.parse().ok()?, output: output.parse().ok()? };
                self.typical.insert(role(name)?, typical);
            }
            _ => return None,
        }
        Some(())
    }
}

fn price(model: &str, rates: &[&str]) -> Option<Price> {
    let [input, output, cache_read, cache_write, context_window] = rates else { return None };
    Some(Price {
        model: model.to_owned(),
        input: Money::parse(input)?,
        output: Money::parse(output)?,
        cache_read: Money::parse(cache_read)?,
        cache_write: Money::parse(cache_write)?,
        context_window: context_window.parse().ok()?,
    })
}

fn role(name: &str) -> Option<Role> {
    ROLES.into_iter().find(|(known, _)| *known == name).map(|(_, role)| role)
}

/// What an attempt is charged by: the model it reports, else its tier. The second value is false where the price of
/// that model is not known, and the first is then what is assumed:
///
/// - the user's own price of the tier, which counts as known;
/// - for a Claude model, the price of the tier that its name contains;
/// - else the dearest there is (M-G9).
///
/// `None` where the run knows no prices at all.
pub fn charged(costs: &Costs, tier: Tier, model: &str) -> Option<(Price, bool)> {
    if costs.prices.is_empty() {
        return None;
    }
    let named = |name: &str| {
        let of_tier = Tier::parse(name).and_then(|tier| costs.prices.get(&tier));
        let of_user = || costs.prices.values().find(|price| price.model == name);
        of_tier.or_else(of_user).or_else(|| built_in().models.get(name)).cloned()
    };
    let found = match model {
        "" => costs.prices.get(&tier).cloned(),
        model => {
            let plain = plain(model);
            named(model).or_else(|| named(plain)).or_else(|| named(undated(plain)))
        }
    };
    let own = || {
        let own = costs.prices.get(&tier)?;
        (built_in().tiers.get(&tier) != Some(own)).then(|| own.clone())
    };
    let known = found.or_else(own).map(|price| (price, true));
    let family = || family(model).and_then(|tier| costs.prices.get(&tier)).cloned();
    Some(known.unwrap_or_else(|| (family().unwrap_or_else(|| dearest(costs)), false)))
}

/// Without the provider some clients put before a name and the options some put behind it: `openai/gpt-5`,
/// `claude-sonnet-4-5[1m]`.
fn plain(model: &str) -> &str {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    name.split_once('[').map_or(name, |(name, _)| name)
}

/// The tier in the name of a Claude model that is newer than the page of prices.
fn family(model: &str) -> Option<Tier> {
    let mut words = plain(model).split('-');
    if words.next() != Some("claude") {
        return None;
    }
    words
        .find_map(|word| [Tier::Haiku, Tier::Sonnet, Tier::Opus].into_iter().find(|tier| tier.name() == word))
}

/// Vendors put the day of a release behind the name.
fn undated(model: &str) -> &str {
    match model.rsplit_once('-') {
        Some((name, day)) if day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => model,
    }
}

/// Every rate at its highest.
pub fn dearest(costs: &Costs) -> Price {
    let mut dearest = Price { model: "the dearest".to_owned(), ..Price::default() };
    for price in costs.prices.values().chain(built_in().models.values()) {
        dearest.input = dearest.input.max(price.input);
        dearest.output = dearest.output.max(price.output);
        dearest.cache_read = dearest.cache_read.max(price.cache_read);
        dearest.cache_write = dearest.cache_write.max(price.cache_write);
        dearest.context_window = dearest.context_window.max(price.context_window);
    }
    dearest
}

#[cfg(test)]
mod tests {
    use super::{built_in, read};
    use crate::model::{Role, Tier};

    /// Every line of the page means something, every tier and role has its row, and a cached token costs a tenth.
    #[test]
    fn bx_24_the_page_of_prices_is_whole() {
        let (page, unread) = read(include_str!("../../data/prices.txt"));
        assert_eq!(unread, Vec::<String>::new());
        assert_eq!(&page, built_in());
        assert!(page.as_of.len() == 10 && page.as_of.starts_with("20"), "{}", page.as_of);
        assert_eq!(page.tiers.keys().copied().collect::<Vec<_>>(), [Tier::Haiku, Tier::Sonnet, Tier::Opus]);
        let roles = [Role::Explorer, Role::Creator, Role::Maker, Role::Gatekeeper, Role::Reviewer];
        assert_eq!(page.typical.keys().copied().collect::<Vec<_>>(), roles);
        for price in page.tiers.values().chain(page.models.values()) {
            assert_eq!(price.cache_read.0 * 10, price.input.0, "{}", price.model);
            assert!(price.output > price.input && price.cache_write >= price.input, "{}", price.model);
            assert!(price.context_window >= 100_000, "{}", price.model);
        }
        for price in page.tiers.values() {
            assert_eq!(page.models.get(&price.model), Some(price));
        }
    }

    #[test]
    fn bx_24_an_invalid_line_is_reported() {
        for line in
            ["tier gold 1 2 3 4 5 x", "model x 1 2 3", "typical poet 1 2", "as_of", "tier haiku 1 2 3 4 -5 x"]
        {
            assert_eq!(read(line).1, [line]);
        }
    }
}
