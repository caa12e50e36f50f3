-- What of the time of cards was before their first use; of attempts of before it is not known.
ALTER TABLE ledger ADD COLUMN start_card_ms BIGINT NOT NULL DEFAULT 0
