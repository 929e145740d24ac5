package images

import (
	"context"
	"net/http"
	"time"
)

// registryWait bounds how long a registry is waited for, since on a machine without one that is lost time.
const registryWait = 4 * time.Second

// apiHosts are registries whose API has another name than their images.
var apiHosts = map[string]string{"docker.io": "registry-1.docker.io"}

// Answers says whether a registry can be reached. Any answer to the API's first question counts, a request to log in
// too.
func Answers(ctx context.Context, host string) bool {
	if api, ok := apiHosts[host]; ok {
		host = api
	}
	return answers(ctx, http.DefaultClient, "https://"+host+"/v2/")
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, registryWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusUnauthorized
}
