// Checks MMDB files with the verifier of github.com/oschwald/maxminddb-golang, then looks up the addresses of the standard input.
// For each file and address it prints country code, AS number, AS name and the length of the prefix, this only if there is a
// record, with | between.
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/oschwald/maxminddb-golang"
)

type record struct {
	Country struct {
		Code string `maxminddb:"iso_code"`
	} `maxminddb:"country"`
	Number *uint32 `maxminddb:"autonomous_system_number"`
	Name   string  `maxminddb:"autonomous_system_organization"`
}

func main() {
	var addresses []net.IP
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		addresses = append(addresses, net.ParseIP(input.Text()))
	}
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	for _, path := range os.Args[1:] {
		database, err := maxminddb.Open(path)
		if err != nil {
			log.Fatal(path, ": ", err)
		}
		if err := database.Verify(); err != nil {
			log.Fatal(path, ": ", err)
		}
		for _, address := range addresses {
			var found record
			network, _, err := database.LookupNetwork(address, &found)
			if err != nil {
				log.Fatal(path, ": ", address, ": ", err)
			}
			number, prefix := "", ""
			if found.Number != nil {
				number = fmt.Sprint(*found.Number)
			}
			if number != "" || found.Country.Code != "" {
				length, _ := network.Mask.Size()
				prefix = fmt.Sprint(length)
			}
			fmt.Fprintf(output, "%s|%s|%s|%s\n", found.Country.Code, number, found.Name, prefix)
		}
	}
}
