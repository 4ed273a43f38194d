def main():
    return {"north": 15.75, "south": 7.0}
