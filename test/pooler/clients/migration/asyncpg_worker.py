"""What asyncpg does with its cache of statements while tables and types change. See ../migration.ts."""

import asyncio
import json
import sys
from datetime import datetime, timedelta, timezone

import asyncpg


async def attempt(label, act):
    try:
        rows = await act
        print(f"{label}: {[tuple(row) for row in rows]!r}")
    except asyncpg.PostgresError as error:
        print(f"{label}: error {error.sqlstate}")
    except (ValueError, TypeError, asyncpg.InterfaceError) as error:
        print(f"{label}: {type(error).__name__}")


async def batch(number, connections):
    for turn in range(2):
        for index, connection in enumerate(connections):
            key = number * 100 + turn * 10 + index
            n = key if number < 1 else 5_000_000_000 + key
            zone = None if number < 2 else timezone(timedelta(hours=5))
            at = datetime(2026, 1, 1, 12, tzinfo=zone)
            mood = "sad" if number < 4 else "mad"
            label = f"{number}.{turn}.{index}"
            insert = "insert into moved (id, n, at, note) values ($1, $2, $3, $4) returning *"
            await attempt(f"{label} insert", connection.fetch(insert, key, n, at, f"note {key}"))
            await attempt(f"{label} text", connection.fetch("insert into moods (m) values ($1) returning m", mood))
            await attempt(f"{label} one", connection.fetch("select n, at from moved where id = $1", key))
            await attempt(f"{label} count", connection.fetch("select count(*) from moved where n = $1", n))
            await attempt(f"{label} all", connection.fetch("select * from moved order by id desc limit 2"))


async def main():
    for place in json.loads(sys.argv[1]):
        print("begin", flush=True)
        sys.stdin.readline()
        connections = [await asyncpg.connect(**place) for _ in range(3)]
        for number in range(6):
            if number > 0:
                print(f"migrate {number}", flush=True)
                sys.stdin.readline()
            await batch(number, connections)
        for connection in connections:
            await connection.close()
    print("end", flush=True)


asyncio.run(main())
